from functools import partial

import pytest
import torch
from toy import toy_config
from toy_training import pretrainer

STAGES = "length_schedule.stages=[{share: 0.5, fraction: 0.5}]"


def test_a_run_compiles_once_for_each_length_and_has_the_loss_of_a_run_without(corpus, tmp_path, monkeypatch):
    graphs = []

    def backend(graph, inputs):
        graphs.append(graph)
        return graph.forward

    torch._dynamo.reset()
    monkeypatch.setattr(torch, "compile", partial(torch.compile, backend=backend, fullgraph=True))
    losses = []
    for compiles in (False, True):
        overrides = [STAGES, "machine.micro_batch_size=8", f"machine.compile={compiles}", "budget.value=60"]
        trainer = pretrainer(toy_config(corpus, *overrides), tmp_path / str(compiles))
        done = trainer.run()
        assert done is not None
        assert all(stage.epochs > 1 for stage in done.stages)
        losses.append(done.final_loss)
    assert len(graphs) == 2
    assert losses[1] == pytest.approx(losses[0], rel=1e-5)
    masked = {len(trainer.batches.batch(step, share=0.9).masked_labels) for step in range(40, 50)}
    assert len(masked) > 1, "every step has another number of masked tokens"


def test_ignored_positions_change_neither_loss_nor_gradients(corpus, tmp_path, monkeypatch):
    results = {}
    for compiles in (False, True):  # the model is not compiled here, only its inputs are padded
        trainer = pretrainer(toy_config(corpus, f"machine.compile={compiles}"), tmp_path / str(compiles))
        monkeypatch.setattr(trainer.optimizer, "step", lambda: None)  # keeps the gradients for the comparison
        monkeypatch.setattr(trainer.optimizer, "zero_grad", lambda set_to_none: None)
        batch = trainer.batches.batch(0)
        sums = trainer.step.take(trainer.model, batch)
        results[compiles] = sums | {name: parameter.grad for name, parameter in trainer.model.named_parameters()}
    for name, tensor in results[False].items():
        torch.testing.assert_close(results[True][name], tensor, rtol=1e-5, atol=1e-7)
