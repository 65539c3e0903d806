from records import toy_column, toy_finetuning, toy_record, toy_run

from albert_lab.report.finetuning import notes, tasks_table
from albert_lab.runs.reported import ReportedRun
from albert_lab.studies.experiment import named


def test_the_learning_rates_of_a_task_are_shown_if_they_differ_between_runs():
    def rates(*asked: float) -> str:
        runs = []
        for number, rate in enumerate(asked):
            tuned = toy_finetuning(f"run-{number}", "sst2", 60.0)
            tried = tuned.model_copy(
                update={"attempts": (tuned.attempts[0].model_copy(update={"learning_rate": rate}),)}
            )
            runs.append(toy_run(f"run-{number}", number, {}, (toy_column("sst2", tried),)))
        table = tasks_table(runs)
        header, _, row = table.splitlines()
        return row.split("|")[[cell.strip() for cell in header.split("|")].index("rate")].strip()

    assert rates(0.001, 0.001) == "0.001"
    assert rates(0.001, 0.00025, 0.0005) == "0.00025 to 0.001"


def test_scores_are_of_the_best_checkpoint_and_losses_of_the_last_step():
    tuned = toy_finetuning("run", "sst2", 60.0)
    ends = {
        place: getattr(tuned, place).model_copy(
            update={"main": getattr(tuned, place).main.model_copy(update={"loss": loss})}
        )
        for place, loss in (("best", 0.7), ("last", 0.5))
    }
    run = ReportedRun(record=toy_record(name="run"), columns=(toy_column("sst2", tuned.model_copy(update=ends)),))
    assert (run.numbers["sst2"], run.numbers["sst2_loss"]) == (60.0, 0.5)


def test_the_notes_name_the_tasks_that_were_fine_tuned_with_a_new_pooler():
    def notes_with(pooler: str) -> str:
        tuned = toy_finetuning("run", "sst2", 60.0)
        tuned = tuned.model_copy(update={"settings": tuned.settings.model_copy(update={"pooler": pooler})})
        runs = (toy_run("run", 0, {}, (toy_column("sst2", tuned),)),)
        return "\n".join(notes(named("sharing"), runs))

    assert "SST-2: fine-tuned with new weights in the pooler" in notes_with("new")
    assert "pooler" not in notes_with("pretrained")
