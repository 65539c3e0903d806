import os

import numpy as np
import pytest
from records import toy_record

from albert_lab.cost import estimate, listing
from albert_lab.runs import results
from albert_lab.runs import run as runs
from albert_lab.studies import dry_run


def test_time_comes_from_the_newest_record_that_can_be_read(own_home):
    record = toy_record()
    for age, name in enumerate(["of-an-earlier-version", "newest", "older"]):
        folder = runs.paths.runs() / name
        folder.mkdir(parents=True)
        results.write(folder, record.model_copy(update={"name": name}))
        os.utime(folder / results.RECORD, (1e9 - age, 1e9 - age))
    earlier = runs.paths.runs() / "of-an-earlier-version" / results.RECORD
    earlier.write_text(earlier.read_text().replace('"seed"', '"sed"'))
    os.utime(earlier, (1e9, 1e9))
    speed, source = dry_run.flops_per_second()
    assert speed == record.training.tokens_per_second * record.train_flops_per_token
    assert "which the run newest reached here" in source


def test_without_a_record_time_comes_from_the_fastest_product_not_from_the_mean(own_home, monkeypatch):
    times = iter([0.0, 0.0, 1e-3, 1e-3, 1e-3 + 1e-5, 2e-3, 4e-3, 1.0])
    monkeypatch.setattr(estimate.time, "perf_counter", lambda: next(times))
    monkeypatch.setattr(np, "matmul", lambda *_, **__: None)
    speed, source = dry_run.flops_per_second()
    assert speed == pytest.approx(2 * estimate.MATRIX_SIZE**3 / 1e-5 * estimate.MEASURED_UTILISATION)
    assert "no run was made here yet" in source


def test_notes_are_as_wide_as_the_terminal_and_not_wider_than_is_easily_read(monkeypatch):
    table = listing.Listing([{"a": 1}], ["word " * 100])
    for columns, width in (("60", 60), ("400", listing.WIDTH)):
        monkeypatch.setenv("COLUMNS", columns)
        lengths = [len(line) for line in table.as_text().splitlines()[3:]]
        assert width - 10 < max(lengths) <= width
    assert table.as_dict()["notes"] == table.notes
