import pandas as pd

from albert_lab.report import alarms
from albert_lab.studies import experiment
from albert_lab.studies.table import Row

TUNINGS = pd.DataFrame({"task": ["race"], "column": ["race"], "title": ["RACE"], "metric": ["accuracy"]})
SOP = "sop_accuracy 0.502 (n = 4,096) is not above chance (0.500) after 2,000 steps"


def rows(*of_rows: list[dict]) -> list[Row]:
    found = []
    for number, runs in enumerate(of_rows):
        named = [{"run": f"{number}-{seed}", "seed": seed} | run for seed, run in enumerate(runs)]
        found.append(Row({"embedding_size": str(number)}, {"embedding_size": "1"}, named, {}))
    return found


def section(table: list[Row], tunings: pd.DataFrame | None = None) -> str:
    return alarms.section(experiment.named("sharing"), table, pd.DataFrame() if tunings is None else tunings)


def test_each_row_is_one_line():
    text = section(
        rows([{"alarms": SOP}] * 3, [{"alarms": f"mlm_accuracy 0.1; {SOP}"}, {}], [{"alarms": float("nan")}])
    )
    assert text.splitlines() == [
        "- embedding_size=1: MLM at chance in 1 of 2 runs.",
        "- embedding_size=0: SOP at chance in all 3 runs.",
        "- embedding_size=1: SOP at chance in 1 of 2 runs.",
    ]


def test_an_alarm_of_a_table_without_axes_names_its_only_row():
    table = [Row({}, {}, [{"run": "0", "seed": 0, "alarms": SOP}], {})]
    assert section(table) == "- the only row: SOP at chance in its one run."


def test_an_alarm_of_all_rows_is_one_line():
    assert section(rows([{"alarms": SOP}] * 3, [{"alarms": SOP}] * 3)) == "- All 6 runs: SOP at chance."


def test_a_task_is_a_line_unless_every_run_is_above_constant_answers():
    low, high = ({"race_low": low, "race_high": 50.0, "race_floor": 30.0} for low in (25.0, 35.0))
    assert section(rows([low, high], [low, {}]), TUNINGS) == "- RACE: 2 of 3 runs are not above constant answers."
    assert section(rows([high], [high, {}]), TUNINGS) == ""
