from command import here
from planted import analysed
from records import BAGS_ALARM, SOP_ALARM, toy_column, toy_finetuning, toy_run
from toy import toy_overrides

from albert_lab import paths
from albert_lab.report import alarms
from albert_lab.score import Alarm
from albert_lab.studies import experiment
from albert_lab.studies.table import Row

MLM_ALARM = SOP_ALARM.model_copy(update={"metric": "mlm_accuracy"})


def rows(*of_rows: list[tuple[Alarm, ...]]) -> list[Row]:
    results = []
    for number, raised_in_runs in enumerate(of_rows):
        runs = [toy_run(f"{number}-{seed}", seed, {}, alarms=raised) for seed, raised in enumerate(raised_in_runs)]
        results.append(Row({"embedding_size": str(number)}, {"embedding_size": "1"}, runs, {}))
    return results


def section(table: list[Row]) -> str:
    return alarms.section(analysed(experiment.named("sharing"), table))


def test_each_row_is_one_line():
    assert section(rows([(SOP_ALARM,)] * 3, [(MLM_ALARM, SOP_ALARM), ()], [()])).splitlines() == [
        "- E = 1: MLM not above chance in 1 of 2 runs.",
        "- E = 0: SOP not above chance in all 3 runs.",
        "- E = 1: SOP not above chance in 1 of 2 runs.",
    ]


def test_the_floor_of_an_alarm_is_named():
    assert section(rows([(BAGS_ALARM,)], [()])) == (
        "- E = 0: SOP above chance, not above bags of tokens, in its one run."
    )


def test_an_alarm_of_a_table_without_axes_names_its_only_row():
    table = [Row({}, {}, [toy_run("0", 0, {}, alarms=(SOP_ALARM,))], {})]
    assert section(table) == "- the only row: SOP not above chance in its one run."


def test_a_task_is_a_line_unless_every_run_is_above_constant_answers():
    def table(*values: float) -> list[Row]:
        runs = []
        for seed, value in enumerate(values):
            tuned = toy_finetuning(f"{seed}", "race", value, interval=(value - 7, value + 7), floor=30.0)
            runs.append(toy_run(f"{seed}", seed, {}, (toy_column("race", tuned),)))
        return [Row({}, {}, [*runs, toy_run("untuned", 9, {})], {})]

    # Of 200 answers, 31 % and 35 % are not above 30 %.
    assert section(table(31.0, 35.0, 50.0)) == "- RACE: 2 of 3 runs are not above constant answers."
    assert section(table(50.0)) == ""


def test_an_alarm_in_training_is_a_line_on_the_page_of_its_report(corpus, own_home, runs_here):
    learns_nothing = toy_overrides(corpus, "budget.value=2", "optimizer.learning_rate=1e-12")
    ended = here("pretrain", *learns_nothing)
    assert ended.returncode == 0, ended.stderr
    (page,) = paths.reports().glob("*/*/report.html")
    assert "SOP not above chance in its one run." in page.read_text()
    assert "SOP not above chance in its one run." in ended.stdout
