import numpy as np
import pytest
from gpu.shares import with_share
from omegaconf import OmegaConf
from records import toy_record

from albert_lab.config.compose import load
from albert_lab.cost import rates
from albert_lab.errors import ConfigError
from albert_lab.runs import results
from albert_lab.runs import run as runs
from albert_lab.runs.speeds import choose_rates
from albert_lab.studies.prices import price


def keep(record, name, speed, steps=1000, **provenance):
    folder = runs.paths.runs() / name
    folder.mkdir(parents=True)
    training = record.training.model_copy(update={"tokens_per_second": speed, "steps": steps})
    origin = record.provenance.model_copy(update=provenance)
    results.write(folder, record.model_copy(update={"name": name, "training": training, "provenance": origin}))


def test_a_rate_is_that_of_the_fastest_run_of_similar_size_with_padding(own_home):
    record = toy_record()
    for name, speed in (("busy", 10.0), ("idle", 30.0), ("busy-again", 20.0)):
        keep(record, name, speed)
    result = choose_rates("cpu", record.config)
    padding = record.data.padding_share
    assert result.of(record.config) == pytest.approx(30.0 * record.train_flops_per_token / (1 - padding))
    assert result.fill(record.config) == 1 - padding
    assert "from 3 runs" in result.source([record.config])


def test_a_run_of_a_few_steps_measures_no_speed(own_home):
    record = toy_record()
    keep(record, "of-a-few-steps", 0.01, steps=31)
    assert choose_rates("cpu", record.config).speeds == ()


def test_processes_on_one_cpu_share_its_rate_and_those_on_gpus_have_one_each(own_home):
    record = toy_record()
    keep(record, "cpu", 30.0, processes=2)
    keep(record, "gpu", 30.0, processes=2, device="cuda", devices=("A", "A"))
    speeds = {speed.device: speed.flops_per_second for speed in choose_rates("cpu", record.config).speeds}
    assert speeds["cpu"] == pytest.approx(2 * speeds["cuda"])


def test_a_rate_between_two_hidden_sizes_lies_between_theirs_and_nearer_to_the_nearer_one():
    def of(hidden):
        return load(["scale=smoke", f"model.hidden_size={hidden}"])

    def speed(hidden, flops_per_second):
        return rates.Speed(of(hidden), flops_per_second, 0.0, "cpu", ("cpu",), of(hidden).machine.precision)

    known = rates.Rates(rates.CPU, speeds=(speed(24, 2.4e9), speed(64, 4e9), speed(64, 6.4e9)))
    assert [known.of(of(hidden)) for hidden in (24, 32, 64, 96)] == pytest.approx([2.4e9, 3.2e9, 6.4e9, 6.4e9])


def test_a_narrower_model_than_any_that_was_trained_is_slower_in_proportion(monkeypatch):
    monkeypatch.setattr(rates, "matrix_product_flops_per_second", lambda: 9e9)

    def of(hidden):
        return load(["scale=overnight", f"model.hidden_size={hidden}", f"model.num_attention_heads={hidden // 12}"])

    def known(*hidden):
        precision = of(24).machine.precision
        return rates.Rates(
            rates.CPU,
            speeds=tuple(rates.Speed(of(size), 1e9 * size, 0.0, "cpu", ("cpu",), precision) for size in hidden),
        )

    near, far = known(72), known(144)
    assert near.of(of(24)) == pytest.approx(24e9)
    assert far.speeds[0].step_flops > 8 * rates.Speed(of(24), 1.0, 0.0, "cpu", ("cpu",), "fp32").step_flops
    assert far.of(of(24)) == pytest.approx(24e9)
    assert [known().of(of(size)) for size in (24, 72, 144)] == pytest.approx([1e9, 3e9, 3e9])


def test_a_record_of_an_earlier_version_is_skipped(own_home):
    record = toy_record()
    for name in ("of-an-earlier-version", "readable"):
        keep(record, name, 10.0)
    file = runs.paths.runs() / "of-an-earlier-version" / results.RECORD
    file.write_text(file.read_text().replace('"seed"', '"sed"'))
    assert len(choose_rates("cpu", record.config).speeds) == 1


def test_without_a_record_a_rate_comes_from_the_fastest_product_not_from_the_mean(own_home, monkeypatch):
    times = iter([0.0, 0.0, 1e-3, 1e-3, 1e-3 + 1e-5, 2e-3, 4e-3, 1.0])
    monkeypatch.setattr(rates.time, "perf_counter", lambda: next(times))
    monkeypatch.setattr(rates, "MATRIX_SIZE", 100)  # 2 million FLOPs in 10 microseconds
    monkeypatch.setattr(np, "matmul", lambda *_, **__: None)
    config = load(["scale=smoke"])
    result = choose_rates("cpu", config)
    assert result.of(config) == pytest.approx(2e11 / 3 * config.model.hidden_size / 72)
    assert "no run was trained here yet" in result.source([config])


def test_a_gpu_is_priced_by_its_peak_until_a_run_on_one_is_recorded(own_home):
    record = toy_record()
    keep(record, "on-a-cpu", 1e9)
    config = load(["scale=gpu"])
    assert choose_rates("h100", config).of(config) == pytest.approx(0.3 * 989e12)
    assert choose_rates("h100", load(["scale=gpu", "machine.precision=fp32"])).of(
        load(["scale=gpu", "machine.precision=fp32"])
    ) == pytest.approx(0.5 * 67e12)
    on_gpu = {"device": "cuda", "devices": ("NVIDIA H100 80GB HBM3",), "precision": "bf16"}
    keep(record.model_copy(update={"config": config}), "on-an-h100", 1e6, **on_gpu)
    speed = 1e6 * record.train_flops_per_token / (1 - record.data.padding_share)
    assert choose_rates("h100", config).of(config) == pytest.approx(speed)
    assert choose_rates("a100", config).of(config) == pytest.approx(0.3 * 312e12)


def test_a_measured_share_of_the_peak_replaces_the_assumed_one(own_home, monkeypatch):
    config = load(["scale=gpu"])
    text = with_share(rates.DEVICES.read_text(), "h100", "bf16", 0.2109)
    changed = rates._Devices.model_validate(OmegaConf.to_container(OmegaConf.create(text)))
    monkeypatch.setattr(rates, "devices", lambda: changed)
    result = choose_rates("h100", config)
    assert result.of(config) == pytest.approx(0.211 * 989e12)
    assert "21% of its peak of 989 TFLOP/s in bf16, measured at scale=gpu" in result.source([config])
    again = OmegaConf.create(with_share(text, "h100", "fp32", 0.5))
    assert again.devices.h100.measured == {"bf16": 0.211, "fp32": 0.5}


def test_gpus_without_bf16_are_priced_in_fp16(own_home):
    config = load(["scale=gpu"])
    assert choose_rates("t4", config).of(config) == pytest.approx(0.3 * 65e12)
    assert choose_rates("t4", config).there(config).machine.precision == "fp16"


@pytest.mark.parametrize(
    ("name", "devices"),
    [
        ("NVIDIA A100-SXM4-80GB", ["a100"]),
        ("NVIDIA L40S", ["l40s"]),
        ("NVIDIA L4", ["l4"]),
        ("NVIDIA A10", ["a10"]),
        ("NVIDIA H100 80GB HBM3", ["h100"]),
        ("NVIDIA RTX A6000", ["a6000"]),
        ("Tesla V100-SXM2-32GB", ["v100"]),
        ("NVIDIA RTX A1000", []),
        ("NVIDIA A10G", []),
    ],
)
def test_a_gpu_is_known_by_whole_words_of_its_name(name, devices):
    assert [device for device, gpu in rates.devices().devices.items() if gpu.is_called(name)] == devices


def test_cuda_without_a_gpu_here_is_priced_on_a_stated_one(own_home, monkeypatch):
    monkeypatch.setattr(rates.machine, "gpu_model", lambda: None)
    config = load(["scale=gpu", "machine.device=cuda"])
    result = choose_rates(None, config)
    assert result.device == rates.devices().default
    assert "no GPU is here; --on names another one" in result.source([config])


@pytest.mark.parametrize(
    ("on", "device", "words"),
    [("h1000", "auto", "allowed: cpu, h200, h100"), ("cpu", "cuda", "give one of them"), ("t4", "cpu", "give one")],
)
def test_an_unknown_device_or_one_that_contradicts_the_run_is_refused(own_home, on, device, words):
    with pytest.raises(ConfigError, match=words):
        choose_rates(on, load(["scale=smoke", f"machine.device={device}"]))


def test_padding_counts_in_time_but_not_in_flops():
    config = load(["scale=smoke"])
    full, half = (rates.price(config, 1e9, fill=fill) for fill in (1.0, 0.5))
    assert half.seconds == pytest.approx(full.seconds)
    assert half.flops == pytest.approx(full.flops / 2)
    tokens = load(["scale=smoke", "budget=tokens"])
    full, half = (rates.price(tokens, 1e9, fill=fill) for fill in (1.0, 0.5))
    assert half.seconds == pytest.approx(2 * full.seconds)
    assert half.flops == pytest.approx(full.flops)


def test_auto_resolves_to_the_micro_batch_that_fits_the_priced_device(own_home):
    config = load(["scale=paper", "model=xxlarge"])
    assert choose_rates("h100", config).there(config).machine.micro_batch_size == 64
    assert choose_rates("rtx4090", config).there(config).machine.micro_batch_size == 16


def test_several_gpus_divide_the_time_of_a_run(own_home, corpus):
    from toy import toy_overrides

    from albert_lab.studies.experiment import from_overrides
    from albert_lab.studies.plan import plan_study

    rest = [text for text in toy_overrides(corpus) if not text.startswith("machine")]
    seconds = []
    for number in (1, 2):
        words = [*rest, f"machine.processes={number}", "seed=0"]
        plan = plan_study(*from_overrides(words), [])
        seconds.append(price(plan.points[0], choose_rates("h100", plan.config)).seconds)
    assert seconds[0] == pytest.approx(2 * seconds[1])
