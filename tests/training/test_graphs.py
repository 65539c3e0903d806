"""Steps by graphs, with a stand-in that does the recorded work again, on the same memory;
test_cuda.py has CUDA's.
"""

from dataclasses import replace

import pytest
import torch
from toy import toy_config
from toy_training import batch_of, pretrainer

from albert_lab import machine
from albert_lab.training import step
from albert_lab.training.optimizer import set_learning_rate
from albert_lab.training.step import WARM_UP, GraphedStep, with_graphs

STAGES = "length_schedule.stages=[{share: 0.5, fraction: 0.5}]"


def losses_of(trainer, steps, number: int) -> list[float]:
    trainer.model.train()
    losses = []
    for index in range(number):
        batch = batch_of(trainer, index, index / number)
        set_learning_rate(trainer.optimizer, 0.01 * (index + 1) / number)
        sums = steps.take(batch, index)
        losses.append(float(sums["mlm_loss"] + sums["pair_loss"] + sums["gradient_norm"]))
    return losses


@pytest.mark.parametrize("optimizer", ["adamw", "muon"])
def test_steps_by_graphs_have_the_losses_of_plain_steps(corpus, tmp_path, optimizer):
    recorded = []

    def capture(work, stream):
        recorded.append(work)
        return work

    config = toy_config(corpus, STAGES, f"optimizer={optimizer}", "budget.value=20")
    plain, graphed = (pretrainer(config, tmp_path / name) for name in ("plain", "graphed"))
    expected = losses_of(plain, plain.step, 20)
    assert losses_of(graphed, GraphedStep(graphed.step, capture), 20) == pytest.approx(
        expected, rel=1e-4
    )
    assert len(recorded) == 2, "one recording for each length"


def test_a_graph_gives_results_that_later_steps_do_not_overwrite(corpus, tmp_path):
    trainer = pretrainer(toy_config(corpus, "optimizer=adamw"), tmp_path)
    memory = {}

    def capture(work, stream):
        def replay():
            for name, value in work().items():
                memory.setdefault(name, torch.empty_like(value)).copy_(value)
            return memory

        return replay

    steps = GraphedStep(trainer.step, capture)
    taken = [steps.take(batch_of(trainer, number), number) for number in range(WARM_UP + 2)]
    assert taken[-1]["mlm_loss"] != taken[-2]["mlm_loss"]


def test_a_step_that_cannot_be_recorded_stays_as_it_is(corpus, tmp_path, monkeypatch):
    monkeypatch.setattr(step, "GraphedStep", lambda recorded: None)
    plain = pretrainer(toy_config(corpus, "optimizer=adamw"), tmp_path).step
    assert with_graphs(plain) is plain, "on a CPU graphs change nothing"
    on_gpu = replace(plain, device=torch.device("cuda"))
    assert with_graphs(on_gpu) is None
    changes = (
        ["optimizer=lamb"],
        ["dropout=0.1"],
        ["machine.micro_batch_size=4"],
        ["budget=wall-clock"],
    )
    others = [
        toy_config(corpus, "optimizer=adamw", *changed)
        for changed in (*changes, ["machine.cuda_graphs=false"])
    ]
    for config in (*others, plain.config.model_copy(update={"ffn_block": "mine"})):
        other = replace(on_gpu, config=config)
        assert with_graphs(other) is other


@pytest.mark.parametrize(
    ("jobs", "free", "fits"), [("1", 60, True), ("6", 60, False), ("1", 5, False)]
)
def test_a_graph_is_recorded_if_it_fits_beside_those_of_all_runs_on_the_gpu(
    monkeypatch, jobs, free, fits
):
    monkeypatch.setenv(machine.JOBS_ON_GPU, jobs)
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda _: (free, 100))
    monkeypatch.setattr(step, "peak_memory_bytes", lambda _: 20)
    assert step.has_room(torch.device("cuda")) == fits
