import pytest
import torch
from toy import toy_config
from toy_training import pretrainer, weights

from albert_lab.data.batches import even_size
from albert_lab.runs.run import plan
from albert_lab.training.step import Step

AUTO = ["machine.micro_batch_size=auto", "budget.value=4", "dropout=0.1", "batch_size=16"]


def run_out_of_memory(monkeypatch, above):
    rehearse = Step.rehearse

    def rehearsed(self, batch, size):
        if size > above:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate more")
        rehearse(self, batch, size)

    monkeypatch.setattr(Step, "rehearse", rehearsed)


def test_auto_halves_the_micro_batch_until_it_fits_and_prints_it_once(corpus, tmp_path, monkeypatch):
    run_out_of_memory(monkeypatch, above=5)
    trainer = pretrainer(toy_config(corpus, *AUTO), tmp_path)
    said = []
    trainer.say = said.append
    done = trainer.run()
    assert done is not None
    assert done.micro_batch_size == 4
    assert said == ["machine.micro_batch_size=auto: 4 of 16 sequences a forward pass; 16 did not fit"]


def test_an_automatic_micro_batch_trains_like_a_given_one(corpus, tmp_path, monkeypatch):
    run_out_of_memory(monkeypatch, above=4)
    automatic = pretrainer(toy_config(corpus, *AUTO), tmp_path / "automatic")
    fixed = pretrainer(toy_config(corpus, *AUTO, "machine.micro_batch_size=4"), tmp_path / "given")
    assert automatic.run()
    assert fixed.run()
    for name, tensor in weights(fixed).items():
        assert torch.equal(tensor, weights(automatic)[name]), name


def test_a_resumed_run_keeps_its_micro_batch_even_if_a_larger_one_fits(corpus, tmp_path, monkeypatch):
    config = toy_config(corpus, *AUTO)
    with monkeypatch.context() as small:
        run_out_of_memory(small, above=2)
        assert pretrainer(config, tmp_path / "straight").run()
        polls = iter([False] * 3)
        assert pretrainer(config, tmp_path / "stopped", is_stopped=lambda: next(polls, True)).run() is None
    done = pretrainer(config, tmp_path / "stopped").run()
    assert done is not None
    assert done.micro_batch_size == 2


def test_another_error_is_not_a_lack_of_memory(corpus, tmp_path, monkeypatch):
    def fail(self, batch, size):
        raise RuntimeError("the shapes do not fit")

    monkeypatch.setattr(Step, "rehearse", fail)
    with pytest.raises(RuntimeError, match="the shapes do not fit"):
        pretrainer(toy_config(corpus, *AUTO), tmp_path).run()


def test_one_sequence_that_does_not_fit_is_an_error_with_its_reason(corpus, tmp_path, monkeypatch):
    run_out_of_memory(monkeypatch, above=0)
    with pytest.raises(RuntimeError, match="no memory for the training on a single sequence"):
        pretrainer(toy_config(corpus, *AUTO), tmp_path).run()


def test_a_rehearsal_changes_no_weights_and_leaves_no_gradients(corpus, tmp_path):
    trainer = pretrainer(toy_config(corpus, *AUTO), tmp_path)
    before = weights(trainer)
    trainer.step.rehearse(trainer.batches.batch(0), 8)
    assert all(torch.equal(tensor, before[name]) for name, tensor in weights(trainer).items())
    assert all(parameter.grad is None for parameter in trainer.model.parameters())


@pytest.mark.parametrize("unit", [[], ["budget=wall-clock"]])
def test_auto_gives_the_same_run_name_as_whole_batches(corpus, unit):
    names = {plan(toy_config(corpus, *unit, f"machine.micro_batch_size={size}")).name for size in ("auto", "null")}
    assert len(names) == 1


def test_micro_batches_divide_the_share_of_a_process():
    assert [even_size(12, most) for most in (0, 1, 5, 7, 12, 99)] == [1, 1, 4, 6, 12, 12]
