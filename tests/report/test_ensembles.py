from records import SQUAD

from albert_lab.report import ensembles
from albert_lab.studies.experiment import named

RACE = SQUAD.model_copy(
    update={
        "task": "race",
        "title": "RACE",
        "metrics": ("accuracy",),
        "single_scores": {"accuracy": 60.0, "accuracy_middle": 66.0, "accuracy_high": 57.5},
        "ensemble_scores": {"accuracy": 64.0, "accuracy_middle": 70.0, "accuracy_high": 61.5},
    }
)


def cells(table: str) -> list[list[str]]:
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()]


def test_an_ensemble_is_shown_next_to_its_members_and_the_papers_ensemble():
    heading, _, table, parts = ensembles.section(named("squad-race"), [SQUAD, RACE]).strip().split("\n\n")
    assert heading == "## Ensembles"
    header, _, squad, race = cells(table)
    assert header[-1] == "paper ensemble"
    assert squad[-1] == "95.5/90.1"
    assert squad[3:6] == ["5 of 5", "60.0 (65.0/55.0)", "64.0 [57.1, 70.3] (69.0/59.0)"]
    assert race[-1] == "—", "the paper has it on the test set"
    assert race[4:6] == ["60.0", "64.0 [57.1, 70.3]"]
    assert cells(parts)[2:] == [
        ["RACE", "accuracy high", "57.5", "61.5"],
        ["RACE", "accuracy middle", "66.0", "70.0"],
    ]


def test_a_report_without_finished_tasks_says_so():
    assert "None: no task was finished by any run." in ensembles.section(named("glue"), [])
