"""Pre-training on a GPU next to that on a CPU; `make gpu-test` runs it."""

import pytest
import torch
from command import here
from toy import toy_config
from toy_training import CPU, pretrainer

pytestmark = [
    pytest.mark.cuda,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU"),
]
CUDA = torch.device("cuda")
STAGES = "length_schedule.stages=[{share: 0.5, fraction: 0.5}]"


def final_loss(
    corpus, folder, device: torch.device, *overrides: str, precision: str = "fp32"
) -> float:
    config = toy_config(corpus, "budget.value=12", *overrides, f"machine.precision={precision}")
    done = pretrainer(config, folder, device=device).run()
    assert done is not None
    return float(done.cost["final_loss"] or "nan")


@pytest.mark.parametrize("optimizer", ["lamb", "adamw", "muon"])
def test_a_gpu_trains_as_a_cpu(corpus, tmp_path, optimizer):
    losses = [
        final_loss(corpus, tmp_path / d.type, d, f"optimizer={optimizer}") for d in (CPU, CUDA)
    ]
    assert losses[1] == pytest.approx(losses[0], rel=2e-3 if optimizer == "muon" else 1e-4)


def test_bf16_changes_the_loss_by_little(corpus, tmp_path):
    if not torch.cuda.is_bf16_supported(including_emulation=False):
        pytest.skip("this GPU has no bf16")
    exact = final_loss(corpus, tmp_path / "fp32", CUDA)
    assert final_loss(corpus, tmp_path / "bf16", CUDA, precision="bf16") == pytest.approx(
        exact, rel=0.01
    )


@pytest.mark.parametrize("optimizer", ["adamw", "muon"])
def test_steps_by_graphs_have_the_loss_of_plain_steps(corpus, tmp_path, optimizer):
    settings = [STAGES, f"optimizer={optimizer}", "budget.value=24"]
    losses = [
        final_loss(corpus, tmp_path / graphs, CUDA, *settings, f"machine.cuda_graphs={graphs}")
        for graphs in ("false", "true")
    ]
    assert losses[1] == pytest.approx(losses[0], rel=2e-3 if optimizer == "muon" else 1e-4)


@pytest.mark.parametrize("processes", [1, 2])
def test_a_study_is_trained_on_gpus(own_home, processes):
    if torch.cuda.device_count() < processes:
        pytest.skip("needs two GPUs")
    asked = ["scale=smoke", "machine.device=cuda", "seed=0", f"machine.processes={processes}"]
    ended = here("pretrain", *asked, "--tasks", "none")
    assert ended.returncode == 0, ended.stderr
