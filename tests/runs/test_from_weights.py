from pathlib import Path

import pytest
import torch
from command import own_signals
from toy import silent, toy_config

from albert_lab import own_code
from albert_lab.data.prepare import prepare
from albert_lab.data.shards import open_shards
from albert_lab.data.tokenizer import load as load_model
from albert_lab.data.vocabulary import find_tokenizer
from albert_lab.errors import DamagedFileError
from albert_lab.measures import catalog
from albert_lab.model.encoder import PretrainingModel
from albert_lab.runs import from_weights, results, worker
from albert_lab.runs import run as runs
from albert_lab.training import checkpoint
from albert_lab.training.evaluate import Evaluator
from albert_lab.training.layers import hidden_states_of, measure_layers


@pytest.fixture
def finished(corpus, own_home):
    """Folder of a finished run of a few steps."""
    folder = runs.create(
        runs.plan(toy_config(corpus, "budget.value=2", "evaluation.num_curve_points=0"))
    )
    assert worker.main(folder) == 0
    return folder


MEASURE = """
from albert_lab.measures.catalog import MEASURES, OwnTextMeasure
from albert_lab.score import by_block, share

def take(model, tokenizer, device):
    return share(3, 4, floor=50, by="head"), by_block([1, 1, 1, 0])

MEASURES["own"] = OwnTextMeasure("own", "Own", take=take)
"""


@pytest.fixture
def own(tmp_path, monkeypatch):
    """Writes a file of own code and includes it, which is forgotten at the end of the test."""
    monkeypatch.setattr(own_code, "_included", {})
    monkeypatch.setattr(catalog, "MEASURES", dict(catalog.MEASURES))

    def include(text) -> Path:
        file = tmp_path / "own.py"
        file.write_text(text)
        own_code.include(file)
        return file

    return include


def scored(folder, file) -> int:
    """The exit code of the process of a run, which includes this file."""
    with own_signals():
        return worker.main(folder, include=[str(file)])


def test_a_finished_run_is_scored_by_a_further_measure_and_nothing_is_trained(finished, own):
    before = results.read(finished)
    weights = checkpoint.last_weights(finished / "checkpoint", finished.name)
    written = weights.stat().st_mtime_ns
    file = own(MEASURE)
    run = runs.plan(runs.read(finished).config)
    assert run.folder == finished, "its name has nothing of the measure"
    assert results.lacks_scores(finished)
    assert scored(finished, file) == 0
    after = results.read(finished)
    assert before is not None
    assert after is not None
    assert after.scores.pop("own").value == 75
    assert after.documents.pop("own").n == (1, 1, 1, 1)
    assert after.scored_with.keys() == {"own.py"}
    changed = {"scored_with": {}, "digest": before.digest}
    assert after.model_copy(update=changed) == before
    assert weights.stat().st_mtime_ns == written
    written = (finished / results.RECORD).stat().st_mtime_ns
    assert scored(finished, file) == 0
    assert (finished / results.RECORD).stat().st_mtime_ns == written, "it is scored once"


def test_another_evaluation_and_another_name_of_the_text_train_nothing(finished, corpus):
    before = results.read(finished)
    assert before is not None
    other = ("corpus.name=renamed", "evaluation.num_pairs=40", "evaluation.batch_size=16")
    settings = ("budget.value=2", "evaluation.num_curve_points=0")
    run = runs.plan(toy_config(corpus, *settings, *other))
    # stopped in the middle, then given again
    folder = runs.create(run)
    assert not from_weights.score_again(run, folder, silent, lambda: True)
    assert not runs.is_trained(folder)
    with own_signals():
        assert worker.main(folder) == 0
    after = results.read(folder, run.name)
    assert after is not None
    assert after.scores["sop_accuracy"].n == 40
    assert after.training == before.training, "its time, too: it is no second training"
    assert after.provenance == before.provenance
    assert results.read(finished) == before
    own_weights = checkpoint.last_weights(folder / "checkpoint", run.name)
    weights = checkpoint.last_weights(finished / "checkpoint", finished.name)
    assert own_weights.samefile(weights), "they are on the disk once"
    # what starts from the two is one training, too
    arms = [
        runs.plan(toy_config(corpus, "dropout=0.2"), runs.StartFrom(run=name, keep="weights"))
        for name in (finished.name, run.name)
    ]
    assert arms[0].name != arms[1].name
    assert arms[0].training == arms[1].training
    for differing in (["seed=1"], ["evaluation.num_curve_points=3"], ["evaluation.seed=5"]):
        another = toy_config(corpus, *settings, *differing)
        assert runs.same_training(runs.plan(another)) is None
    (finished / "checkpoint").rename(finished / "gone")
    assert runs.same_training(run) is None


def test_a_record_stays_as_it_was_if_scoring_is_stopped_or_the_weights_are_gone(finished, own):
    before = (finished / results.RECORD).read_bytes()
    file = own(MEASURE)
    run = runs.read(finished)
    assert not from_weights.score_again(run, finished, silent, lambda: True)
    (finished / "checkpoint").rename(finished / "gone")
    assert scored(finished, file) == 4
    assert "the run's weights are gone" in (finished / runs.FAILURE).read_text()
    assert (finished / results.RECORD).read_bytes() == before


@pytest.mark.parametrize(
    ("names", "trains", "scores"),
    [
        (["MEASURES"], False, True),
        (["CHECKS"], False, False),
        (["MEASURES", "OPTIMIZERS"], True, False),
        ([], True, False),
    ],
)
def test_a_file_is_in_the_names_of_runs_unless_it_uses_measures_and_checks_alone(
    own, names, trains, scores
):
    own("".join(f"# {name}\n" for name in names))
    assert bool(own_code.of_training()) == trains
    assert bool(own_code.of_measures()) == scores


def test_the_layers_of_a_run_are_those_of_its_last_weights_and_are_measured_once(finished):
    said: list[str] = []
    result = from_weights.layers_of(finished, said.append)
    assert any("measuring" in line for line in said)
    config = runs.read(finished).config
    tokenizer = load_model(find_tokenizer(config))
    train, dev = (
        open_shards(prepare(config, silent), split, tokenizer) for split in ("train", "dev")
    )
    model = PretrainingModel.from_config(config)
    checkpoint.load_weights(checkpoint.last_weights(finished / "checkpoint", finished.name), model)
    cpu = torch.device("cpu")
    batch = Evaluator(config, train, dev, tokenizer, {}, cpu).batch(catalog.MLM)
    states = hidden_states_of(model.eval(), batch, config.evaluation.batch_size, cpu)
    expected = measure_layers(states, "files")
    for layer, change in zip(result, expected, strict=True):
        assert layer.degrees == pytest.approx(change.degrees, abs=1e-4)
        assert (layer.n, layer.corpus) == (change.n, "files")
    assert max(layer.n for layer in result) == batch.num_tokens

    (finished / "checkpoint").rename(finished / "gone")
    said.clear()
    assert from_weights.layers_of(finished, said.append) == result
    assert said == []
    (finished / "layers.json").write_text("[]")
    with pytest.raises(DamagedFileError, match=r"layers\.json"):
        from_weights.layers_of(finished, silent)
