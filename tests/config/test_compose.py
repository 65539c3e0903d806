import json
import sys

import pytest
from hydra import compose
from omegaconf import OmegaConf
from toy_folders import toy_tokenizer_file

from albert_lab import paths
from albert_lab.config import compose as config
from albert_lab.config.launcher import take
from albert_lab.config.section import complete
from albert_lab.errors import ConfigError

OPTION_FILES = sorted(
    file for file in paths.CONF.rglob("*.yaml") if file.parent not in (paths.CONF, paths.CONF / "task")
)
OPTIONS = [(group, option) for group, options in config.groups().items() for option in options]
# Values that the user must give for an option.
REQUIRED = {
    "corpus=files": ["corpus.path=text/*.txt"],
    "added_corpus=files": ["added_corpus.path=text/*.txt"],
    "tokenizer=model-file": ["tokenizer.model_file=30k-clean.model"],
}


def load_option(group, option):
    choice = f"{group}={option}"
    return config.load([choice, *REQUIRED.get(choice, [])])


# The files in conf/


def test_every_yaml_under_conf_is_an_option_of_a_group():
    assert len(OPTION_FILES) == len(OPTIONS) > 0
    assert {(file.parent.name, file.stem) for file in OPTION_FILES} == set(OPTIONS)


@pytest.mark.parametrize(("group", "option"), OPTIONS)
def test_every_option_composes_and_is_named_after_its_file(group, option):
    if group == "launcher":  # a setting of the command, not of its runs
        assert take([f"launcher={option}"])[0].name == option
        return
    assert getattr(load_option(group, option), group).name == option


def test_every_yaml_begins_with_a_comment():
    for file in [*paths.CONF.rglob("*.yaml"), *paths.EXPERIMENTS.glob("*.yaml")]:
        first = file.read_text().removeprefix("# @package _global_\n").splitlines()[0]
        assert first.startswith("# "), file
        assert len(first) > 20, file


def test_yaml_reads_the_name_of_every_option_as_text():
    misread = {"no", "off", "yes", "on", "y", "n", "true", "false", "null", "~"}
    assert not misread & {option.lower() for _, option in OPTIONS}
    assert not [option for _, option in OPTIONS if option.replace(".", "").isdigit()]


@pytest.mark.parametrize(
    "overrides",
    [
        ["scale=smoke", "model.num_layers=3", "sharing=not-shared", "budget.value=${scale.budget.tokens}"],
        ["embedding_size=${hidden_over:2}", "model.hidden_size=48", "scale=gpu", "optimizer.betas=[0.8,0.9]"],
        ["inter_sentence.labels=[{kind: consecutive, share: 0.5}, {kind: swapped, share: 0.5}]", "masking=official"],
        ["corpus=files", "corpus.path='a b, c'", "machine.threads=2", "machine.threads=null"],
    ],
)
def test_values_set_on_composed_options_give_the_composition_of_hydra(overrides):
    with config.hydra():
        composed = OmegaConf.to_container(compose("config", overrides=overrides), resolve=True)
    content = config.content_of(overrides)
    for group in config.groups():
        composed[group].setdefault("name", content[group]["name"])  # pyright: ignore
    composed["tokenizer"]["vocab_size"] = content["tokenizer"]["vocab_size"]  # pyright: ignore
    assert content == composed


# Precedence of values


def test_a_text_of_the_user_has_the_name_that_the_user_gives_it():
    of_files = ["corpus=files", "corpus.path=texts"]
    assert config.load(of_files).corpus.name == "files"
    assert config.load([*of_files, "corpus.name=novels"]).corpus.name == "novels"
    with pytest.raises(ConfigError, match="corpus.name"):  # the name of an option is fixed
        config.load(["corpus.name=novels"])
    with pytest.raises(ConfigError, match="corpus.name: 'a/b' is not a name"):
        config.load([*of_files, "corpus.name=a/b"])


def test_laptop_is_the_default_scale():
    assert config.load([]) == config.load(["scale=laptop"])


@pytest.mark.parametrize("order", [1, -1])
def test_the_command_line_overrides_the_scale(order):
    def load(*overrides):
        return config.load(overrides[::order])

    assert load("scale=paper", "masking=as-described").masking == config.load(["scale=laptop"]).masking
    assert load("scale=paper", "model=tiny").model.name == "tiny"
    assert load("scale=smoke", "batch_size=8").batch_size == 8
    assert load("scale=smoke", "optimizer.learning_rate=0.5").optimizer.learning_rate == 0.5
    assert load("scale=laptop", "dropout=0.1").dropout == 0.1


@pytest.mark.parametrize("budget", ["steps", "tokens", "wall-clock"])
def test_a_scale_sets_the_length_of_a_run_in_every_unit(budget):
    resolved = config.load(["scale=smoke", f"budget={budget}"])
    assert resolved.budget.value == getattr(resolved.scale.budget, resolved.budget.unit)
    assert config.load(["scale=smoke", f"budget={budget}", "budget.value=7"]).budget.value == 7


def test_not_shared_follows_the_number_of_layers():
    sharing = config.load(["sharing=not-shared", "model.num_layers=5"]).sharing
    assert (sharing.attention_groups, sharing.ffn_groups) == (5, 5)


def test_the_default_learning_rate_is_the_papers_scaled_by_the_root_of_the_batch():
    unset = ["scale=paper", "optimizer.learning_rate=null"]
    assert config.load(unset).learning_rate == pytest.approx(0.00176)
    assert config.load([*unset, "batch_size=1024"]).learning_rate == pytest.approx(0.00088)
    assert config.load([*unset, "optimizer.learning_rate=0.3"]).learning_rate == 0.3


def test_a_configuration_is_frozen_and_read_back_from_json():
    resolved = config.load(["inter_sentence=three-way", "corpus=wikipedia-books"])
    with pytest.raises(ValueError, match="frozen"):
        resolved.seed = 1  # pyright: ignore[reportAttributeAccessIssue]
    assert config.validate(json.loads(resolved.model_dump_json())) == resolved


# Errors


@pytest.mark.parametrize(
    ("override", "nearest"),
    [
        ("modl=base", "model"),
        ("embedding_sze=64", "embedding_size"),
        ("hidden_size=64", "model.hidden_size"),
        ("+sed=3", "seed"),
        ("model=bse", "model=base"),
        ("inter_sentence=spo", "inter_sentence=sop"),
    ],
)
def test_the_error_for_an_unknown_name_suggests_the_nearest_one(override, nearest):
    with pytest.raises(ConfigError, match="unknown") as error:
        config.load([override])
    assert override.removeprefix("+").split("=")[0] in str(error.value)
    assert f"did you mean {nearest}?" in str(error.value)


def test_the_error_for_an_unknown_name_without_a_near_one_lists_all_names():
    with pytest.raises(ConfigError, match=r"unknown key optimizer\.zzz; .*learning_rate, betas"):
        config.load(["optimizer.zzz=1"])
    with pytest.raises(ConfigError, match=r"scale=nope is unknown \(allowed: .*laptop"):
        config.load(["scale=nope"])
    with pytest.raises(ConfigError, match=r"unknown key hydra\.run\.dir"):
        config.load(["hydra.run.dir=elsewhere"])


@pytest.mark.parametrize(
    ("overrides", "says"),
    [
        ("embedding_size=abc", "embedding_size=abc: .*integer"),
        ("embedding_size=1.5", "embedding_size=1.5: .*integer"),
        ("embedding_size=null", "embedding_size=null: .*integer"),
        ("seed='1'", "seed=1: .*integer"),
        ("seed=-1", "seed=-1: .*greater than or equal to 0"),
        ("seed=4294967296", "seed=4294967296: .*less than 4294967296"),
        ("evaluation.seed=100000000000000000000000", "evaluation.seed=1.*: .*less than 4294967296"),
        ("dropout=1", "dropout=1: .*less than 1"),
        ("tokenizer.vocab_size=2147483648", "tokenizer.vocab_size=2147483648: .*less than or equal to 16777216"),
        ("tokenizer.training_sentences=50", "tokenizer.training_sentences=50: .*greater than or equal to 101"),
        (f"tokenizer.training_sentences={10**20}", "sentences=10{20}: .*less than or equal to 1000000000000"),
        ("tokenizer.character_coverage=0.9", "tokenizer.character_coverage=0.9: .*greater than or equal to 0.98"),
        ("dropout=nan", "dropout=NaN: .*finite"),
        ("optimizer.learning_rate=inf", "optimizer.learning_rate=Infinity: .*finite"),
        ("optimizer.betas=0.9", r"optimizer.betas: 0.9 is not a pair of numbers such as \[0.9,0.999\]"),
        ("optimizer.betas=[0.9]", r"optimizer.betas: \[0.9\] is not a pair of numbers"),
        ("optimizer.betas=[0.9,1]", "optimizer.betas.1=1: .*less than 1"),
        ("machine.compile=1", "machine.compile=1: .*boolean"),
        ("machine.report_to=[wandb,comet]", "report_to.1=comet: .*'tensorboard' or 'wandb'"),
        ("machine.report_to=3", "machine.report_to=3: .*array"),
        ("machine.report_to=[wandb,wandb]", "wandb is given twice"),
        ("machine.precision=fp8", "machine.precision=fp8: .*'bf16'"),
        ("evaluation=3", "evaluation=3: .*object"),
        ("budget.value=2.5", "value=2.5 is not a whole number of steps"),
        ("budget.value=1e300", "budget.value=1e\\+300: .*less than or equal to 1000000000000000"),
        ("model=3", "model=3: .*tiny"),
        ("scale.seeds=[-1]", r"^scale.seeds.0=-1: [^\n]*\Z"),
        ("scale.seeds=[]", r"^scale.seeds=\[\]: .*at least 1 item"),
        ("inter_sentence=null", "inter_sentence=null: .*none, nsp"),
        ("model.num_attention_heads=7", "=7 does not divide hidden_size=72; .* 6, 8, 9; or hidden_size=70 or 77"),
        ("embedding_size=${hidden_over:7}", "model.hidden_size=72 is not divisible by 7.*embedding_size"),
        ("inter_sentence.labels.0.share=0.4", "shares of labels sum to 0.9, not to 1"),
        ("inter_sentence.labels=[{kind: swapped, share: 1.0}]", "a single label cannot be classified"),
        ("inter_sentence.labels.1.kind=consecutive", "occurs twice"),
        ("inter_sentence.labels.0.kind=same-document", "no label is of kind consecutive"),
        ("inter_sentence.labels=[{kind: swapped},{kind: consecutive, share: 1.0}]", "labels.0.share is missing"),
        ("masking.random_share=0.3", r"mask_share \+ random_share is 1.1, more than 1"),
        ("machine.cuda_graphs=1", "machine.cuda_graphs"),
        ("machine.micro_batch_size=7", "machine.micro_batch_size=7 does not divide batch_size=32"),
        ("max_sequence_length=1024", "max_sequence_length=1024 .* model.max_position_embeddings=512"),
        ("sharing.ffn_groups=4", "sharing.ffn_groups=4 is more than model.num_layers=2"),
        ("corpus=files", "corpus.path must be given"),
        ("added_corpus.path=x", "added_corpus.path=x: not read with added_corpus=none; give added_corpus=files too"),
        ("added_corpus.datasets=[{path: x}]", "added_corpus.datasets=.* give added_corpus=openwebtext too"),
        ("tokenizer=model-file", "tokenizer.model_file must be given"),
    ],
)
def test_an_invalid_value_is_refused_with_its_key_and_the_allowed_values(overrides, says):
    with pytest.raises(ConfigError, match=says):
        config.load([overrides])


@pytest.mark.parametrize(("key", "option"), [("corpus", "wikipedia-books"), ("added_corpus", "openwebtext")])
def test_a_path_beside_data_sets_of_the_hub_is_refused(key, option):
    with pytest.raises(ConfigError, match=rf"{key}: path=x is not read: .*own files: {key}=files"):
        config.load([f"{key}={option}", f"{key}.path=x"])


def test_a_row_without_added_text_leaves_the_text_of_the_other_rows_unread():
    assert config.load(["added_corpus=none", "added_corpus.path=x"]).added_corpus.source == "none"


@pytest.mark.parametrize("text", ["batch", "-m", "--multirun", "=3", ""])
def test_a_text_without_key_and_value_is_refused(text):
    for door in (config.load, config.axes):
        with pytest.raises(ConfigError, match=rf"^'{text}' is not of the form KEY=VALUE$"):
            door([text])


def test_a_run_allows_one_value_per_key():
    with pytest.raises(ConfigError, match="seed=1,2 has several values"):
        config.load(["seed=1,2"])


@pytest.mark.parametrize("budget", ["steps", "wall-clock"])
def test_trackers_are_no_part_of_what_names_a_run(budget):
    without, some = (
        config.load(["scale=smoke", f"budget={budget}", *more])
        for more in ([], ["machine.report_to=[wandb,tensorboard]"])
    )
    assert some.machine.report_to == ("wandb", "tensorboard")
    assert some.identity() == without.identity()
    assert "report_to" not in without.identity().get("machine", {})


@pytest.mark.parametrize("code", ["en", "en-GB", "zh-Hant", "yue", "sr-Latn-RS"])
def test_a_language_is_a_code_with_optional_subtags_of_bcp_47(code):
    assert config.load([f"corpus.language={code}"]).corpus.language == code


@pytest.mark.parametrize("code", ["xx", "xx-GB", "english", "EN", "en_GB", "en-", "e", "''"])
def test_an_unknown_language_is_refused(code):
    with pytest.raises(ConfigError, match=r"corpus\.language.* is not a language code"):
        config.load([f"corpus.language={code}"])


@pytest.mark.parametrize("text", ["/x/${seed}", r"/x/\${seed}", r"/x/\\${seed}", r"\\host\x", "/x's \"${seed}", "/x\\"])
def test_a_quoted_value_is_taken_literally(text):
    assert config.load(["corpus=files", f"corpus.path={config.quoted(text)}"]).corpus.path == text


def test_too_many_values_are_refused_with_the_limit():
    with pytest.raises(ConfigError, match="seed=range\\(0,1000000\\) has more than 10,000 values"):
        config.axes(["seed=range(0,1000000)"])


def test_an_existing_tokenizer_sets_the_vocabulary_size(tmp_path):
    file = toy_tokenizer_file(tmp_path, vocab_size=52)
    asked = ["tokenizer=model-file", f"tokenizer.model_file={tmp_path / 'mine.model'}"]
    before = config.load(asked).tokenizer.vocab_size
    file.rename(tmp_path / "mine.model")  # between two commands of one process, which keep what they composed
    paths.forget()
    assert config.load(asked).tokenizer.vocab_size == 52 != before


@pytest.mark.parametrize("name", ["env.sh", "tokenizer.json"])
@pytest.mark.parametrize("more", [[], ["tokenizer.vocab_size=50"]])
def test_a_file_that_is_no_tokenizer_is_refused_by_its_key(tmp_path, name, more):
    if name.endswith(".json"):
        pytest.importorskip("tokenizers")
    (tmp_path / name).write_text("export A=1\n")
    with pytest.raises(
        ConfigError, match=rf"^tokenizer\.model_file=.*{name} is neither a SentencePiece model nor a tok"
    ):
        config.load(["tokenizer=model-file", f"tokenizer.model_file={tmp_path / name}", *more])


def test_a_tokenizer_file_whose_package_is_missing_is_read_at_its_first_use(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    (tmp_path / "tokenizer.json").write_text("{}")
    composed = config.load(["tokenizer=model-file", f"tokenizer.model_file={tmp_path / 'tokenizer.json'}"])
    assert composed.tokenizer.model_file == str(tmp_path / "tokenizer.json")


def test_the_shown_configuration_has_every_key_also_those_that_records_leave_out():
    composed = config.load(["scale=smoke"])
    shown = complete(composed)
    assert shown["position_encoding"] == "learned"
    assert shown["inter_sentence"]["random_share"] == 0
    assert set(shown) == set(type(composed).model_fields)
    assert config.load(["scale=smoke", f"position_encoding={shown['position_encoding']}"]) == composed
