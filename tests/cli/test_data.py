from command import here
from toy_tasks import toy_task


def test_data_status_lists_missing_data_and_its_expected_paths(tmp_path):
    toy_task("mnli", tmp_path)
    shown = here("data", "status", ALBERT_LAB_TASKS=str(tmp_path)).stdout
    assert "MNLI: train 16, dev 16\n" in shown
    assert f"RACE: no data; race: no train data at {tmp_path}/race/train: put it there, or run" in shown


def test_data_status_exits_with_4_if_a_task_that_is_named_cannot_be_used(tmp_path):
    toy_task("mnli", tmp_path)
    assert here("data", "status", "--tasks", "mnli", ALBERT_LAB_TASKS=str(tmp_path)).returncode == 0
    done = here("data", "status", "--tasks", "mnli,race", ALBERT_LAB_TASKS=str(tmp_path))
    assert done.returncode == 4
    assert "without train or dev examples: race" in done.stderr
