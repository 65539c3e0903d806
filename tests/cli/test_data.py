import json
import re

from command import here
from toy import toy_overrides
from toy_tasks import toy_task


def test_a_corpus_provides_tasks_and_their_predictions_are_scored(corpus, own_home):
    overrides = toy_overrides(corpus)
    counts = json.loads(here("data", "make-tasks", str(own_home / "tasks"), *overrides, "--json").stdout)
    assert counts["pair-relation"]["dev"] > 0
    dev = (own_home / "tasks" / "corpus" / "pair-relation" / "dev.tsv").read_text().splitlines()[1:]
    answers = ["index\tprediction", *(f"{index}\t{line.split(chr(9))[-1]}" for index, line in enumerate(dev))]
    (own_home / "answers.tsv").write_text("\n".join(answers) + "\n")
    options = ["--data", str(own_home / "tasks"), "--json"]
    done = here("score", "pair-relation", str(own_home / "answers.tsv"), *options)
    assert json.loads(done.stdout) == {"accuracy": 100.0}


def test_data_status_lists_missing_data_and_its_expected_paths(tmp_path):
    toy_task("mnli", tmp_path)
    shown = here("data", "status", ALBERT_LAB_TASKS=str(tmp_path)).stdout
    assert re.search(r"MNLI +train 16, dev 16 +dev_mismatched: glue/MNLI/dev_mismatched.tsv", shown)
    assert re.search(r"RACE +train: race/train; dev: race/dev; test: race/test", shown)
    assert f"looked for in {tmp_path}" in shown


def test_data_status_exits_with_4_if_a_task_that_is_named_cannot_be_used(tmp_path):
    toy_task("mnli", tmp_path)
    assert here("data", "status", "--tasks", "mnli", ALBERT_LAB_TASKS=str(tmp_path)).returncode == 0
    done = here("data", "status", "--tasks", "mnli,race", ALBERT_LAB_TASKS=str(tmp_path))
    assert done.returncode == 4
    assert "without train or dev examples: race" in done.stderr
