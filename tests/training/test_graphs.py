"""Steps by graphs, with a stand-in that does the recorded work again, on the same memory; test_cuda.py has CUDA's."""

import pytest
import torch
from toy import toy_config
from toy_training import CPU, pretrainer

from albert_lab.errors import ConfigError
from albert_lab.training.graphs import WARM_UP, GraphedStep, with_graphs
from albert_lab.training.optimizer import set_learning_rate

STAGES = "length_schedule.stages=[{share: 0.5, fraction: 0.5}]"


def losses_of(trainer, steps, number: int) -> list[float]:
    trainer.model.train()
    losses = []
    for step in range(number):
        batch = trainer.batches.batch(step, step / number)
        set_learning_rate(trainer.optimizer, 0.01 * (step + 1) / number)
        sums = steps.take(trainer.model, batch, step)
        losses.append(float(sums["mlm_loss"] + sums["pair_loss"] + sums["gradient_norm"]))
    return losses


@pytest.mark.parametrize("optimizer", ["adamw", "muon"])
def test_steps_by_graphs_have_the_losses_of_plain_steps(corpus, tmp_path, optimizer):
    recorded = []

    def capture(work, stream):
        recorded.append(work)
        return work

    settings = [STAGES, f"optimizer={optimizer}", "dropout=0.1", "budget.value=20"]
    plain = pretrainer(toy_config(corpus, *settings), tmp_path / "plain")
    graphed = pretrainer(toy_config(corpus, *settings, "machine.cuda_graphs=true"), tmp_path / "graphed")
    expected = losses_of(plain, plain.step, 20)
    assert losses_of(graphed, GraphedStep(graphed.step, capture), 20) == pytest.approx(expected, rel=1e-4)
    assert len(recorded) == 2, "one recording for each length"
    assert all(isinstance(group["lr"], torch.Tensor) for group in graphed.optimizer.param_groups)


def test_a_graph_gives_results_that_later_steps_do_not_overwrite(corpus, tmp_path):
    trainer = pretrainer(toy_config(corpus, "optimizer=adamw", "machine.cuda_graphs=true"), tmp_path)
    memory = {}

    def capture(work, stream):
        def replay():
            for name, value in work().items():
                memory.setdefault(name, torch.empty_like(value)).copy_(value)
            return memory

        return replay

    steps = GraphedStep(trainer.step, capture)
    taken = [steps.take(trainer.model, trainer.batches.batch(number), number) for number in range(WARM_UP + 2)]
    assert taken[-1]["mlm_loss"] != taken[-2]["mlm_loss"]


def test_on_a_cpu_graphs_change_nothing(corpus, tmp_path):
    trainer = pretrainer(toy_config(corpus, "machine.cuda_graphs=true"), tmp_path)
    assert with_graphs(trainer.step) is trainer.step
    assert trainer.device == CPU


@pytest.mark.parametrize(
    ("overrides", "obstacle"),
    [
        (["optimizer=lamb"], r"optimizer=lamb \(allowed: adamw, muon\)"),
        (["optimizer=adamw", "machine.compile=true"], "machine.compile=true"),
        (["optimizer=adamw", "machine.micro_batch_size=4"], "micro-batches"),
    ],
)
def test_settings_that_cannot_be_recorded_are_refused_on_a_gpu(corpus, tmp_path, overrides, obstacle):
    trainer = pretrainer(toy_config(corpus, "machine.cuda_graphs=true", *overrides), tmp_path)
    object.__setattr__(trainer.step, "device", torch.device("cuda"))
    with pytest.raises(ConfigError, match=f"machine.cuda_graphs=true cannot be combined with .*{obstacle}"):
        with_graphs(trainer.step)
