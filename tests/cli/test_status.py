import json

from toy import toy_config

from albert_lab import storage
from albert_lab.cli.housekeeping import as_text, row_of
from albert_lab.runs import results
from albert_lab.runs import run as runs

LINE = {
    "event": "training",
    "step": 1_200,
    "share": 0.5,
    "loss": 5.5,
    "mlm_loss": 4.8,
    "pair_loss": 0.7,
}
LINE |= {"tokens_per_second": 8_123.4, "seconds_left": 65.0, "training_seconds": 65.0}


def started(corpus, seed):
    folder = runs.create(runs.plan(toy_config(corpus, f"seed={seed}")))
    (folder / results.METRICS).write_text(json.dumps(LINE) + "\n")
    return folder


def test_a_run_that_trains_has_rate_losses_and_time_left(corpus, own_home):
    folder = started(corpus, 0)
    with storage.locked(folder / runs.LOCK, print):
        row = row_of(folder, "sop seed 0")
    assert row["seconds_left"] == 65
    digest = folder.name[-12:]
    assert runs.find(digest) == folder
    line = as_text([row]).splitlines()[2]
    assert (
        " ".join(line.split())
        == f"sop seed 0 {digest} running 50% 1,200 8,123 5.500 4.800 0.700 65 s"
    )
    line = as_text([row_of(folder, "sop seed 0")]).splitlines()[2]
    assert " ".join(line.split()) == f"sop seed 0 {digest} missing 50% 1,200 5.500 4.800 0.700"
