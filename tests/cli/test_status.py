import json

from command import here
from toy import toy_config, toy_plan, write_corpus

from albert_lab import storage
from albert_lab.cli.housekeeping import as_text, row_of
from albert_lab.runs import results
from albert_lab.runs import run as runs
from albert_lab.studies import study

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
        row = row_of(folder, "smoke-files/toy", "sop seed 0")
    assert row["seconds_left"] == 65
    digest = folder.name[-12:]
    assert runs.find(digest) == folder
    shown = f"sop seed 0 {digest} running 50% 1,200 8,123 4.800 0.700 65 s"
    assert [" ".join(line.split()) for line in as_text([row]).splitlines()[2:4]] == [
        "smoke-files/toy:",
        shown,
    ]
    line = as_text([row_of(folder)]).splitlines()[3]
    assert " ".join(line.split()) == f"{folder.name[:-13]} {digest} missing 50% 1,200 4.800 0.700"


def test_runs_of_one_row_on_two_texts_stand_below_their_reports(corpus, own_home, tmp_path):
    texts = [corpus, write_corpus(tmp_path / "other text", seed=1)]
    for text in texts:
        plan = study.renamed_if_taken(toy_plan(text, "embedding_size=4,8"), print)
        study.begin(plan)
        for point in plan.points:
            runs.create(point.run)
    listed = here("status").stdout.splitlines()
    headings = [line for line in listed if line.startswith("smoke-files/")]
    assert len({*headings}) == 2
    assert len({line for line in listed if "embedding_size=4" in line}) == 2
