import pytest
import torch
from toy import silent, toy_config

from albert_lab.data.prepare import prepare
from albert_lab.data.shards import open_shards
from albert_lab.data.tokenizer import load as load_model
from albert_lab.data.vocabulary import find_tokenizer
from albert_lab.errors import DamagedFileError
from albert_lab.measures import catalog
from albert_lab.model.encoder import PretrainingModel
from albert_lab.runs import layers, worker
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


def test_the_layers_of_a_run_are_those_of_its_last_weights_on_its_held_out_set(finished):
    result = layers.layers_of(finished, silent)
    config = runs.read(finished).config
    tokenizer = load_model(find_tokenizer(config))
    train, dev = (
        open_shards(prepare(config, silent), split, tokenizer) for split in ("train", "dev")
    )
    model = PretrainingModel.from_config(config)
    checkpoint.load_weights(checkpoint.last_weights(finished / "checkpoint", finished.name), model)
    batch = Evaluator(config, train, dev, tokenizer, {}, torch.device("cpu")).batch(catalog.MLM)
    expected = measure_layers(
        hidden_states_of(model.eval(), batch, config.evaluation.batch_size, torch.device("cpu")),
        "files",
    )
    assert [layer.degrees for layer in result] == pytest.approx(
        [change.degrees for change in expected], abs=1e-4
    )
    assert [layer.n for layer in result] == [change.n for change in expected]
    assert max(layer.n for layer in result) == batch.num_tokens
    assert {layer.corpus for layer in result} == {"files"}


def test_a_run_is_measured_once(finished):
    said: list[str] = []
    first = layers.layers_of(finished, said.append)
    assert any("measuring" in line for line in said)
    (finished / "checkpoint").rename(finished / "gone")
    said.clear()
    assert layers.layers_of(finished, said.append) == first
    assert said == []
    (finished / "layers.json").write_text("[]")
    with pytest.raises(DamagedFileError, match=r"layers\.json"):
        layers.layers_of(finished, silent)
