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
