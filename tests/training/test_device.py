import pytest
import torch
from toy import toy_config

from albert_lab.errors import ConfigError
from albert_lab.training.device import autocast, check_memory, choose_device, choose_precision

CPU = torch.device("cpu")


@pytest.mark.parametrize(
    ("machine", "has_mkldnn", "has_avx512_bf16", "precision"),
    [
        ("x86_64", True, True, "bf16"),
        ("x86_64", True, False, "fp32"),
        ("arm64", False, False, "fp32"),
    ],
)
def test_auto_is_bf16_if_the_cpu_computes_it_natively(
    monkeypatch, machine, has_mkldnn, has_avx512_bf16, precision
):
    monkeypatch.setattr("platform.machine", lambda: machine)
    monkeypatch.setattr("torch.backends.mkldnn.is_available", lambda: has_mkldnn)
    monkeypatch.setattr("torch.cpu._is_avx512_bf16_supported", lambda: has_avx512_bf16)
    assert choose_precision("auto", CPU) == precision


@pytest.mark.parametrize(
    ("precision", "dtype"), [("bf16", torch.bfloat16), ("fp32", torch.float32)]
)
def test_a_forward_pass_is_in_the_precision(precision, dtype):
    with autocast(precision, CPU)():
        assert torch.nn.functional.linear(torch.ones(2, 3), torch.ones(4, 3)).dtype == dtype


@pytest.mark.skipif(torch.cuda.is_available(), reason="a machine without CUDA")
def test_cuda_must_be_available_if_it_is_named():
    assert choose_device("auto") == CPU
    with pytest.raises(ConfigError, match="machine.device=cuda"):
        choose_device("cuda")


@pytest.mark.parametrize(
    "asked",
    ["model.hidden_size=400000", "batch_size=999999999999", "evaluation.num_pairs=999999999999"],
)
def test_a_run_that_exceeds_memory_is_refused(tmp_path, asked):
    with pytest.raises(ConfigError, match="training needs at least"):
        check_memory(toy_config(tmp_path, asked))
    check_memory(toy_config(tmp_path))
