import json
from collections.abc import Sequence

import pytest
from command import own_signals
from safetensors.numpy import load_file
from toy import toy_experiment, toy_overrides, toy_plan, trained, write_corpus

from albert_lab.errors import ConfigError
from albert_lab.interop.loading import open_run as load_run
from albert_lab.runs import results, states
from albert_lab.runs import run as runs
from albert_lab.studies.experiment import named
from albert_lab.studies.plan import Plan, plan_study


@pytest.fixture(autouse=True)
def signals():
    with own_signals():
        yield


@pytest.fixture
def finished(corpus, own_home) -> runs.Run:
    """A run that ended under a budget of its own."""
    return ended(corpus)


def ended(corpus, *overrides: str) -> runs.Run:
    """A run with dropout of two steps, trained in this process."""
    toy = toy_experiment(grid={"dropout": ["0.1"]})
    run = plan_study(toy, toy_overrides(corpus, "budget.value=2", *overrides), []).points[0].run
    trained(run)
    return run


def imported(run: runs.Run, missing: Sequence[str] = ()) -> runs.Run:
    """The run as if its weights had come from elsewhere."""
    (run.folder / runs.IMPORT).write_text(json.dumps({"missing_parts": missing}))
    (run.folder / results.RECORD).unlink()
    assert states.state(run.folder) == "imported"
    return run


def settings_on(corpus, *overrides) -> list[str]:
    """Overrides for the toy corpus with the tokenizer of a run."""
    return [text for text in toy_overrides(corpus, *overrides) if not text.startswith("tokenizer")]


def planned(run, corpus, *overrides) -> Plan:
    start = f"start_from={run.name}"
    return plan_study(toy_experiment(), [start, *settings_on(corpus, *overrides)], [])


def weights_of(run: runs.Run) -> dict:
    return load_file(max((run.folder / "checkpoint").glob("step-*")) / "model.safetensors")


def test_training_continues_from_an_imports_weights_and_leaves_it_unchanged(corpus, finished):
    before = weights_of(imported(finished))
    plan = planned(finished, corpus, "budget.value=3", "optimizer.learning_rate=1e-9")
    (item,) = plan.points
    assert item.lineage[0].run == finished
    assert plan.to_train == [item]
    record = trained(item.run)
    assert record.start_from == runs.StartFrom(run=finished.name, keep="weights")
    assert record.training.steps == 3
    after = weights_of(item.run)
    assert max(abs(after[name] - tensor).max() for name, tensor in before.items()) < 1e-7
    assert states.state(finished.folder) == "imported"


def test_a_study_of_an_encoder_names_it_and_has_random_weights_beside_its_first_row(
    corpus, finished
):
    plan = planned(finished, corpus, "dropout=0,0.1", "seed=0,1")
    assert plan.experiment.start_from == finished.name
    assert [point.with_random for point in plan.points] == [True, False, False, False]


def test_a_continued_run_keeps_shape_and_tokenizer_and_takes_overrides(corpus, finished):
    (item,) = planned(finished, corpus, "batch_size=2", "seed=3").points
    config = item.run.config
    for key in ("model", "sharing", "embedding_size", "tokenizer", "dropout"):
        assert getattr(config, key) == getattr(finished.config, key)
    assert item.run.evaluation_set == finished.evaluation_set
    assert (config.batch_size, config.seed) == (2, 3)


def test_a_continued_run_holds_out_what_the_other_one_did(corpus, own_home, tmp_path):
    run = ended(corpus, "corpus.dev_share=0.15")

    def continued(text, *overrides):
        asked = [item for item in settings_on(text) if not item.startswith("corpus.dev")]
        start = [f"start_from={run.name}", *asked, "budget.value=2", *overrides]
        return plan_study(toy_experiment(), start, []).points[0].run.config

    other = write_corpus(tmp_path, seed=5)
    for text in (corpus, f"{corpus}/.", other):
        assert continued(text).corpus.dev_share == 0.15
    assert continued(other, "inter_sentence.random_share=0.3").inter_sentence.random_share == 0.3


def test_settings_of_a_study_and_of_its_labels_win_over_those_of_the_run(corpus, finished):
    def of_label_b(*settings):
        grid = {"variant": {"a": ["inter_sentence=none"], "b": settings}}
        shape = ["sharing=groups", "sharing.ffn_groups=1"]
        content = {"fixed": ["dropout=0.3", *shape], "start_from": finished.name, "grid": grid}
        asked = ["variant=b", *settings_on(corpus)]
        return plan_study(toy_experiment(**content), asked, []).points[0].run.config

    config = of_label_b("inter_sentence=sop", "budget.value=4")
    assert (config.inter_sentence.name, config.dropout) == ("sop", 0.3)
    assert (config.sharing.name, config.sharing.ffn_groups) == ("groups", 1)
    with pytest.raises(ConfigError, match="hidden_size"):
        of_label_b("model.hidden_size=96")


def test_on_other_text_the_tokenizer_of_the_weights_is_kept(finished, tmp_path):
    other = write_corpus(tmp_path / "other", seed=5)
    (item,) = planned(finished, other).points
    file = item.run.config.tokenizer.model_file
    assert file is not None
    assert item.run.config.tokenizer.vocab_size == finished.config.tokenizer.vocab_size
    assert runs.read(runs.create(item.run)) == item.run
    record = trained(item.run)
    assert record.data.earlier_steps == 2, "those of the run that it starts from"


@pytest.mark.parametrize(
    ("override", "what"),
    [
        ("model.hidden_size=96", "hidden_size"),
        ("model=base", "model"),
        ("inter_sentence=three-way", "pair head"),
    ],
)
def test_what_the_weights_determine_cannot_be_set(corpus, finished, override, what):
    with pytest.raises(ConfigError, match=what):
        planned(finished, corpus, override)


def test_a_run_of_no_steps_has_the_converted_weights_and_says_what_was_converted(corpus, finished):
    settings = ["budget.value=0", "embedding_size=5", "sharing=not-shared", "model.num_layers=3"]
    (item,) = planned(finished, corpus, *settings).points
    record = trained(item.run)
    assert record.conversion is not None
    assert record.conversion.changes["embedding_size"] == (8, 5)
    assert record.conversion.changes["num_layers"] == (2, 3)
    assert 0 < (record.conversion.unexplained or 0) < 1
    assert (record.training.steps, record.training.final_loss, record.untrained) == (0, None, ())
    assert "mlm_accuracy" in record.scores
    assert load_run(item.run.folder).missing == ()
    # As after a kill between the last checkpoint and the record.
    (item.run.folder / results.RECORD).unlink()
    resumed = trained(item.run)
    assert (resumed.scores, resumed.conversion) == (record.scores, record.conversion)
    with pytest.raises(ConfigError, match=r"budget.value=0 trains nothing"):
        toy_plan(corpus, "budget.value=0")


def test_heads_that_a_start_lacks_are_neither_scored_nor_exported_before_they_are_trained(
    corpus, finished
):
    imported(finished, missing=["mlm_head", "pair_head"])
    records = []
    for steps in (0, 1):
        (item,) = planned(finished, corpus, f"budget.value={steps}", "sharing=not-shared").points
        records.append(trained(item.run))
        assert load_run(item.run.folder).missing == records[-1].untrained
    assert [record.untrained for record in records] == [("mlm_head", "pair_head"), ()]
    assert ["mlm_accuracy" in record.scores for record in records] == [False, True]
    assert [record.scores["sop_accuracy"].by for record in records] == ["linear probe", "head"]


def test_rows_of_a_table_of_the_paper_are_shapes_of_the_encoder(corpus, finished):
    def shapes(table: str) -> set[tuple[int, str, int]]:
        asked = [f"start_from={finished.name}", *settings_on(corpus, "seed=0")]
        configs = [point.config for point in plan_study(named(table), asked, []).points]
        return {(of.embedding_size, of.sharing.name, of.model.num_layers) for of in configs}

    names = ("all-shared", "shared-attention", "shared-ffn", "not-shared")
    assert finished.config.model.hidden_size == 48
    assert shapes("sharing") == {(size, name, 2) for size in (48, 8) for name in names}
    assert shapes("depth") == {(8, "all-shared", layers) for layers in range(1, 7)}
    assert shapes("sop-vs-nsp") == {(8, "all-shared", 2)}


@pytest.mark.parametrize(
    ("given", "rule"),
    [
        (["sharing=not-shared"], "stepwise"),
        (["sharing=not-shared", "conversion.sharing=lower"], "lower"),
        (["embedding_size=5"], "average"),
    ],
)
def test_blocks_are_shared_stepwise_unless_another_rule_is_given(corpus, finished, given, rule):
    config = planned(finished, corpus, *given).points[0].run.config
    assert config.conversion.sharing == rule


def test_the_refusal_of_longer_sequences_names_the_setting_that_gives_the_encoder_more_positions(
    corpus, finished
):
    length = 2 * finished.config.model.max_position_embeddings
    with pytest.raises(ConfigError, match=r"give model\.max_position_embeddings=") as refused:
        planned(finished, corpus, f"max_sequence_length={length}")
    remedy = str(refused.value).partition("give ")[2].split()[0]
    (item,) = planned(finished, corpus, f"max_sequence_length={length}", remedy).points
    assert item.run.config.model.max_position_embeddings == length
