import shutil
from itertools import zip_longest

import pytest
from hydra.types import RunMode
from omegaconf import OmegaConf
from toy_folders import toy_tokenizer_file

from albert_lab import paths
from albert_lab.config import compose as config
from albert_lab.config.section import complete
from albert_lab.errors import ConfigError

# Values that the user must give for an option.
REQUIRED = {
    "corpus=files": ["corpus.path=text/*.txt"],
    "added_corpus=files": ["added_corpus.path=text/*.txt"],
    "tokenizer=model-file": ["tokenizer.model_file=30k-clean.model"],
}


# The files in conf/


# one of each group at a time
@pytest.mark.parametrize("options", [*zip_longest(*config.groups().values())])
def test_every_option_composes_and_is_named_after_its_file(options):
    chosen = {
        group: option for group, option in zip(config.groups(), options, strict=True) if option
    }
    choices = [f"{group}={option}" for group, option in chosen.items()]
    composed = config.load(
        [*choices, *(text for choice in choices for text in REQUIRED.get(choice, []))]
    )
    assert {group: getattr(composed, group).name for group in chosen} == chosen


@pytest.mark.parametrize(
    "overrides",
    [
        [
            "scale=smoke",
            "model.num_layers=3",
            "sharing=not-shared",
            "budget.value=${scale.budget.tokens}",
        ],
        [
            "embedding_size=${hidden_over:2}",
            "model.hidden_size=48",
            "scale=gpu",
            "optimizer.betas=[0.8,0.9]",
        ],
        [
            "inter_sentence.labels=[{kind: consecutive, share: 0.5}, {kind: swapped, share: 0.5}]",
            "masking=official",
        ],
        ["corpus=files", "corpus.path='a b, c'", "machine.threads=2", "machine.threads=null"],
    ],
)
def test_values_set_on_composed_options_give_the_composition_of_hydra(overrides):
    composed = config.hydra().load_configuration("config", overrides, RunMode.RUN, from_shell=False)
    composed = OmegaConf.masked_copy(composed, [*map(str, composed)][1:])
    content = config.content_of(config.settings_of(overrides))
    for group in config.groups():
        composed[group].setdefault("name", content[group]["name"])
    assert content == OmegaConf.to_container(composed, resolve=True)


# Precedence of values


def test_a_text_of_the_user_has_the_name_that_the_user_gives_it():
    of_files = ["corpus=files", "corpus.path=texts"]
    assert config.load(of_files).corpus.name == "files"
    assert config.load([*of_files, "corpus.name=novels"]).corpus.name == "novels"


@pytest.mark.parametrize("order", [1, -1])
def test_the_command_line_overrides_the_scale(order):
    for key, value in (
        ("masking", "as-described"),
        ("model", "tiny"),
        ("batch_size", "8"),
        ("optimizer.learning_rate", "0.5"),
    ):
        given = ["scale=paper", f"{key}={value}"][::order]
        assert config.load(given).value(key) == value != config.load(["scale=paper"]).value(key)


@pytest.mark.parametrize("budget", ["steps", "tokens", "wall-clock"])
def test_a_scale_sets_the_length_of_a_run_in_every_unit(budget):
    resolved = config.load(["scale=smoke", f"budget={budget}"])
    assert resolved.budget.value == resolved.scale.budget[resolved.budget.unit]
    assert config.load(["scale=smoke", f"budget={budget}", "budget.value=7"]).budget.value == 7


def test_the_default_learning_rate_is_the_papers_scaled_by_the_root_of_the_batch():
    unset = ["scale=paper", "optimizer.learning_rate=null"]
    assert config.load(unset).learning_rate == pytest.approx(0.00176)
    assert config.load([*unset, "batch_size=1024"]).learning_rate == pytest.approx(0.00088)
    assert config.load([*unset, "optimizer.learning_rate=0.3"]).learning_rate == 0.3


# Errors


@pytest.mark.parametrize(
    ("override", "said"),
    [
        ("embedding_sze=64", "did you mean embedding_size?"),
        ("hidden_size=64", "did you mean model.hidden_size?"),
        ("+sed=3", "config show"),
        ("inter_sentence=spo", "sop-release"),
        ("hydra.run.dir=elsewhere", "unknown key hydra"),
        ("seed='1'", "seed=1"),
        ("dropout=nan", "dropout=NaN"),
        ("corpus.path=null", "path=null with source=package"),
        ("model.num_attention_heads=7", "hidden_size=72"),
        ("embedding_size=${hidden_over:7}", "embedding_size"),
        ("inter_sentence.labels.0.share=0.4", "inter_sentence"),
        (
            "inter_sentence.labels=[{kind: swapped},{kind: consecutive, share: 1.0}]",
            "labels.0.share",
        ),
        ("machine.micro_batch_size=7", "batch_size=32"),
        ("machine.processes=3", "batch_size=32"),
        ("max_sequence_length=1024", "max_position_embeddings=512"),
        ("sharing.ffn_groups=4", "num_layers=2"),
        ("corpus=files", "corpus.path"),
        ("corpus.name=novels", "corpus.name"),  # the name of an option is fixed
        ("corpus.language=en_GB", "corpus.language"),
        ("added_corpus.path=x", "added_corpus=files"),
        ("seed=1,2", "seed=1,2"),
        (f"corpus.path={'[' * 500}{']' * 500}", "corpus.path"),
        ("tokenizer.model_file=/dev/zero", "no ordinary file"),
    ],
)
def test_an_invalid_override_is_refused_with_its_key_and_what_is_allowed(override, said):
    with pytest.raises(ConfigError) as error:
        config.load([override])
    assert said in str(error.value)


def test_an_existing_tokenizer_sets_the_vocabulary_size(tmp_path):
    file = toy_tokenizer_file(tmp_path, vocab_size=52)
    asked = ["tokenizer=model-file", f"tokenizer.model_file={tmp_path / 'mine.model'}"]
    before = config.load(asked).tokenizer.vocab_size
    # between two commands of one process, which keep what they composed
    file.rename(tmp_path / "mine.model")
    paths.use_conf([])
    assert config.load(asked).tokenizer.vocab_size == 52 != before


def test_options_of_a_folder_count_from_the_moment_it_is_named(tmp_path):
    shutil.copytree(paths.CONF / "budget", tmp_path / "budget")
    for file in (tmp_path / "budget").iterdir():
        file.rename(file.with_stem(f"my-{file.stem}"))
    paths.use_conf([tmp_path])
    try:
        assert config.load(["budget=my-steps"]).budget.name == "my-steps"
    finally:
        paths.use_conf([])
    with pytest.raises(ConfigError, match="my-steps"):
        config.load(["budget=my-steps"])


def test_an_option_that_writes_elsewhere_than_into_its_group_is_refused(tmp_path):
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "mine.yaml").write_text("# @package _global_\nseed: 7\n")
    paths.use_conf([tmp_path])
    try:
        with pytest.raises(ConfigError, match="model=mine"):
            config.load(["model=mine"])
    finally:
        paths.use_conf([])


@pytest.mark.parametrize("name", ["env.sh", "tokenizer.json"])
def test_a_file_that_is_no_tokenizer_is_refused_by_its_key(tmp_path, name):
    (tmp_path / name).write_text("export A=1\n")
    with pytest.raises(ConfigError, match=name):
        config.load(["tokenizer=model-file", f"tokenizer.model_file={tmp_path / name}"])


def test_the_shown_configuration_has_every_key_also_those_that_records_leave_out():
    composed = config.load(["scale=smoke"])
    shown = complete(composed)
    assert shown["position_encoding"] == "learned"
    assert shown["inter_sentence"]["random_share"] == 0
    assert set(shown) == set(type(composed).model_fields)
    assert (
        config.load(["scale=smoke", f"position_encoding={shown['position_encoding']}"]) == composed
    )


@pytest.mark.parametrize(("layers", "blocks"), [(1, (0,)), (2, (0, 1)), (5, (0, 1, 1, 1, 2))])
def test_a_sandwich_shares_the_layers_between_the_first_and_the_last(layers, blocks):
    sharing = config.load(["sharing=sandwich", f"model.num_layers={layers}"]).sharing
    assert sharing.attention_groups == sharing.ffn_groups == blocks
