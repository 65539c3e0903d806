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


NATIVE_BF16 = pytest.mark.skipif(
    not torch.cuda.is_bf16_supported(including_emulation=False), reason="this GPU has no bf16"
)
ADAMW, MUON = ["optimizer=adamw"], ["optimizer=muon"]
GRAPHS, NO_GRAPHS = "machine.cuda_graphs=true", "machine.cuda_graphs=false"


def final_loss(corpus, folder, device: torch.device, *overrides: str) -> float:
    config = toy_config(corpus, "budget.value=12", *overrides)
    done = pretrainer(config, folder, device=device).run()
    assert done is not None
    return float(done.cost["final_loss"] or "nan")


@pytest.mark.parametrize(
    ("device", "expected", "overrides", "error"),
    [
        (CPU, ["optimizer=lamb"], ["optimizer=lamb"], 1e-4),
        (CPU, ADAMW, ADAMW, 1e-4),
        (CPU, MUON, MUON, 2e-3),
        pytest.param(CUDA, ADAMW, [*ADAMW, "machine.precision=bf16"], 0.01, marks=NATIVE_BF16),
        (CUDA, [*ADAMW, STAGES, NO_GRAPHS], [*ADAMW, STAGES, GRAPHS], 1e-4),
        (CUDA, [*MUON, STAGES, NO_GRAPHS], [*MUON, STAGES, GRAPHS], 2e-3),
    ],
)
def test_a_gpu_trains_as_a_cpu_and_bf16_and_graphs_change_little(
    corpus, tmp_path, device, expected, overrides, error
):
    loss = final_loss(corpus, tmp_path / "plain", device, *expected)
    other = final_loss(corpus, tmp_path / "other", CUDA, *overrides)
    assert other == pytest.approx(loss, rel=error)


@pytest.mark.parametrize("processes", [1, 2])
def test_a_study_is_trained_on_gpus(own_home, processes):
    if torch.cuda.device_count() < processes:
        pytest.skip("needs two GPUs")
    asked = ["scale=smoke", "machine.device=cuda", "seed=0", f"machine.processes={processes}"]
    ended = here("pretrain", *asked, "--tasks", "none")
    assert ended.returncode == 0, ended.stderr
