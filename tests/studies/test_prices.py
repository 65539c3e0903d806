import os

import pytest
from records import toy_record

from albert_lab.config.compose import load
from albert_lab.model.counts import count
from albert_lab.runs.results import RECORD, write
from albert_lab.studies.prices import Price, costs, last_speed


@pytest.mark.parametrize(
    "overrides",
    [
        ["scale=laptop"],
        ["scale=smoke", "sharing=not-shared", "embedding_size=48", "inter_sentence=none"],
        ["scale=paper", "sharing=groups", "ffn_block=glu", "inter_sentence=three-way", "masking=official"],
    ],
    ids=" ".join,
)
def test_the_formula_gives_the_flops_that_the_model_is_counted_to_take_and_its_matrices(overrides):
    config = load(overrides)
    counted = count(config)
    parameters, training, inference = costs(config)
    assert training == pytest.approx(counted.training_flops, rel=1e-12)
    assert inference == pytest.approx(counted.inference_flops, rel=1e-12)
    assert parameters == pytest.approx(counted.total, rel=0.05)


def test_time_is_flops_over_the_speed_of_the_newest_run_on_the_device(own_home):
    assert last_speed("cpu") is None
    price = Price(runs=2, flops=4e12, seconds=60.0, disk_bytes=3 << 20)
    assert price.as_text("h100", price.time(None)) == "2 runs, 4.0e+12 FLOPs (no speed known for h100), 3.1 MB"
    record = toy_record()
    for name, tokens_per_second, devices in (("old", 50.0, ()), ("new", 100.0, ()), ("gpu", 1e6, ("NVIDIA H100",))):
        training = record.training.model_copy(update={"tokens_per_second": tokens_per_second, "steps": 100})
        provenance = record.provenance.model_copy(update={"devices": devices})
        folder = own_home / "runs" / name
        folder.mkdir(parents=True)
        write(folder, record.model_copy(update={"name": name, "training": training, "provenance": provenance}))
    os.utime(own_home / "runs" / "old" / RECORD, (0, 0))
    speed = last_speed("cpu")
    assert speed is not None
    assert speed == 100 / (1 - record.data.padding_share) * record.train_flops_per_token
    assert last_speed("h100") == pytest.approx(1e4 * speed)
    assert price.time(speed, 2) == 60 + 4e12 / speed / 2
