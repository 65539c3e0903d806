import os
import signal
import socket
import time

import pytest
import torch
from toy import toy_config
from toy_training import in_processes, pretrainer, train, weights

from albert_lab.data.prepare import prepare
from albert_lab.errors import LostProcessError
from albert_lab.rank import Rank
from albert_lab.training.processes import HOST, PEER_SECONDS, Processes, Rendezvous

# At least four micro-batches per step, so that they are the same for any number of processes.
CASES = {
    "lamb": ["dropout=0.1", "machine.micro_batch_size=4"],
    "adamw, no pair loss": ["dropout=0.1", "machine.micro_batch_size=4", "optimizer=adamw", "inter_sentence=none"],
    # In bf16 an iteration of Muon enlarges differences of rounding to a hundredth of an update.
    "muon": ["machine.micro_batch_size=4", "optimizer=muon", "optimizer.learning_rate=0.0003"],
    "smaller micro-batches": ["dropout=0.1", "machine.micro_batch_size=2", "inter_sentence=three-way"],
}
COMMON = ["budget.value=8", "machine.log_every_steps=1", "evaluation.num_curve_points=1"]


@pytest.fixture(scope="module", autouse=True)
def prepared(corpus):
    """The text of every test here: the processes cannot prepare it, since they cannot have children."""
    prepare(toy_config(corpus, *COMMON), lambda line: None)


@pytest.fixture(scope="module")
def alone(corpus, tmp_path_factory):
    configs = {name: toy_config(corpus, *COMMON, *overrides) for name, overrides in CASES.items()}
    return configs, train(Processes(), configs, tmp_path_factory.mktemp("alone"))


@pytest.mark.parametrize("size", [2, 4])
def test_several_processes_train_the_same_model_as_one(alone, tmp_path, size):
    configs, expected = alone
    leader, *others = in_processes(size, train, configs, tmp_path)
    for name in configs:
        losses, tensors, scores = expected[name]
        torch.testing.assert_close(leader[name][0], losses, rtol=0, atol=1e-6)
        assert leader[name][2] == scores
        for key, tensor in tensors.items():
            torch.testing.assert_close(leader[name][1][key], tensor, rtol=0, atol=5e-5 if name == "muon" else 1e-5)
            for other in others:
                assert (other[name][1][key] == leader[name][1][key]).all(), "all have the same weights, to the bit"


def train_until(processes, config, folder, stop_at, number):
    """Trains until a step at which only one process is asked to stop."""
    trainer = pretrainer(config, folder, processes=processes)
    trainer.is_stopped = lambda: processes.rank.number == number and trainer.position.steps >= stop_at
    done = trainer.run()
    return (
        done and done.processes,
        trainer.position.steps,
        {key: tensor.numpy() for key, tensor in weights(trainer).items()},
    )


def test_a_stop_of_any_process_stops_all_and_another_number_can_resume(corpus, tmp_path):
    config = toy_config(corpus, *COMMON, *CASES["lamb"])
    straight = train_until(Processes(), config, tmp_path / "straight", 99, 0)
    for size, stop_at in ((2, 3), (4, 6)):
        result = in_processes(size, train_until, config, tmp_path / "stopped", stop_at, size - 1)
        assert [ended[:2] for ended in result] == [(None, stop_at)] * size
        assert [path.name for path in (tmp_path / "stopped" / "checkpoint").iterdir()][-1:]
    counts, steps, tensors = train_until(Processes(), config, tmp_path / "stopped", 99, 0)
    assert (counts, steps) == ({0: 2, 3: 4, 6: 1}, 8)
    for key, tensor in straight[2].items():
        torch.testing.assert_close(tensors[key], tensor, rtol=0, atol=1e-5)


def test_two_stopped_and_resumed_processes_end_with_the_weights_of_uninterrupted_ones(corpus, tmp_path):
    config = toy_config(corpus, *COMMON, "dropout=0.1")
    straight = in_processes(2, train_until, config, tmp_path / "straight", 99, 0)[0]
    in_processes(2, train_until, config, tmp_path / "stopped", 5, 1)
    resumed = in_processes(2, train_until, config, tmp_path / "stopped", 99, 0)[0]
    assert resumed[0] == {0: 2}
    assert all((tensor == straight[2][key]).all() for key, tensor in resumed[2].items())


def end_at(processes, config, folder, number, how):
    trainer = pretrainer(config, folder, processes=processes)
    prefetch = trainer.batches.prefetch

    def end(step, share):
        for batch in prefetch(step, share):
            if trainer.position.steps == 4 and processes.rank.number == number:
                how(processes)
            yield batch

    trainer.batches.prefetch = end
    trainer.run()


def kill(processes):
    os.kill(os.getpid(), signal.SIGKILL)


def fail(processes):
    processes.fail(ValueError("no such thing"))
    os._exit(1)


@pytest.mark.parametrize("number", [0, 1])
def test_a_killed_process_is_lost_and_not_failed(corpus, tmp_path, number):
    config = toy_config(corpus, *COMMON, "machine.checkpoint_seconds=0")
    result = in_processes(2, end_at, config, tmp_path, number, kill)
    assert result[number] == -signal.SIGKILL
    assert isinstance(result[1 - number], LostProcessError)
    assert (tmp_path / "checkpoint" / "step-00000004").is_dir(), "what was saved before is whole"


def test_a_failed_process_fails_the_run_with_its_reason(corpus, tmp_path):
    config = toy_config(corpus, *COMMON)
    leader, code = in_processes(2, end_at, config, tmp_path, 1, fail)
    assert code == 1
    assert str(leader) == "process 1: no such thing"
    assert not isinstance(leader, LostProcessError)


@pytest.mark.parametrize("number", [0, 1])
def test_a_process_whose_others_do_not_come_stops_when_it_is_asked_to(monkeypatch, number):
    with socket.create_server((HOST, 0)) as free:
        port = free.getsockname()[1]
    place = {"MASTER_ADDR": HOST, "MASTER_PORT": str(port), "RANK": str(number), "WORLD_SIZE": "2"}
    for key, value in (place | {PEER_SECONDS: "20"}).items():
        monkeypatch.setenv(key, value)
    began = time.monotonic()
    with pytest.raises(LostProcessError, match="had not come"):
        Rendezvous.elsewhere(Rank(number, 2, number, 2), lambda: time.monotonic() > began + 0.2)
    assert time.monotonic() < began + 10
