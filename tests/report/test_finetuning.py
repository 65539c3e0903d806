import pandas as pd
from records import toy_column, toy_finetuning, toy_record

from albert_lab.report.finetuning import sections
from albert_lab.runs import tables
from albert_lab.runs.reported import ReportedRun


def test_the_learning_rates_of_a_task_are_shown_if_they_differ_between_runs():
    def rates(*asked: float) -> str:
        lines = []
        for number, rate in enumerate(asked):
            tuned = toy_finetuning(f"run-{number}", "sst2", 60.0)
            run = ReportedRun(record=toy_record(name=f"run-{number}"), columns=(toy_column("sst2", tuned),))
            lines += [line | {"learning_rate": rate} for line in tables.finetunings(run)]
        _, table, *_ = sections(pd.DataFrame(lines))
        header, _, row = table.splitlines()
        return row.split("|")[[cell.strip() for cell in header.split("|")].index("rate")].strip()

    assert rates(0.001, 0.001) == "0.001"
    assert rates(0.001, 0.00025, 0.0005) == "0.00025 to 0.001"
