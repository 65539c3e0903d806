import shutil

from toy import toy_overrides
from toy_tasks import toy_task

from albert_lab import paths
from albert_lab.report import report
from albert_lab.runs import finetunings as downstream
from albert_lab.runs import results, states
from albert_lab.studies import layers, recorded, sweep
from albert_lab.studies.experiment import Experiment
from albert_lab.tasks.records import identity_of

ROWS = {"dropout": ["0.1", "0"]}
CHAIN = {"row": {"model.num_layers": "2"}, "parent": {"model.num_layers": "1"}, "keep": "weights"}


def toy(grid, **content) -> Experiment:
    return Experiment.model_validate({"name": "toy", "title": "Toy", "source": "none", "grid": grid} | content)


def planned(experiment, corpus, *overrides, tasks=()):
    return sweep.plan(experiment, toy_overrides(corpus, "budget.value=2", *overrides), list(tasks))


def written(experiment, items) -> dict[str, str]:
    """The files of the report on finished runs."""
    assert sweep.execute(items, sweep.Options()).code == 0
    points = sweep.points_table(items, sweep.Outcome(), "albert-lab toy")
    folder = paths.reports() / sweep.report_place(items[0].point.config) / experiment.name
    layers.keep(folder, experiment, items, lambda _line: None)
    report.write(folder, experiment, points, *sweep.tables(items))
    return {file.name: file.read_text() for file in folder.iterdir() if file.suffix in (".csv", ".md")}


def test_runs_whose_numbers_stand_in_a_report_are_finished_and_give_the_same_report(corpus, own_home, runs_here, capfd):
    experiment = toy(ROWS, figures=["learning-curves", "layer-similarity"])
    before = written(experiment, planned(experiment, corpus))
    shutil.rmtree(paths.runs())
    items = planned(experiment, corpus)
    assert [item.state for item in items] == ["recorded"] * 2
    assert written(experiment, items) == before
    assert not paths.runs().exists()
    assert "2 finished before, 0 to make" in capfd.readouterr().err


def test_another_seed_is_made_beside_them(corpus, own_home, runs_here):
    experiment = toy(ROWS)
    before = written(experiment, planned(experiment, corpus, "seed=0"))
    shutil.rmtree(paths.runs())
    items = planned(experiment, corpus, "seed=0,1")
    assert [item.state for item in items] == ["recorded", "missing"] * 2
    after = written(experiment, items)
    assert {item.point.config.seed for item in items if item.run.folder.exists()} == {1}
    old, new = (set(files["results.csv"].splitlines()) for files in (before, after))
    assert old < new
    assert len(new) == 5


def test_a_fresh_start_makes_them_again(corpus, own_home, runs_here):
    experiment = toy(ROWS)
    written(experiment, planned(experiment, corpus))
    shutil.rmtree(paths.runs())
    items = planned(experiment, corpus)
    assert sweep.execute(sweep.forget(items, fresh=True, retry_failed=False), sweep.Options()).code == 0
    assert [item.state for item in items] == ["done"] * 2


def test_numbers_that_stand_in_a_report_alone_outlive_another_report_in_its_place(corpus, own_home, runs_here):
    experiment = toy(ROWS)
    before = written(experiment, planned(experiment, corpus))
    folder = paths.reports() / sweep.report_place(planned(experiment, corpus)[0].point.config) / experiment.name

    def said_before_a_report_of(items) -> list[str]:
        said: list[str] = []
        table, _, tunings = sweep.tables(items)
        recorded.set_aside(folder, table, tunings, said.append)
        return said

    assert not said_before_a_report_of(planned(experiment, corpus)[:1]), "the run folders have them"
    shutil.rmtree(paths.runs())
    items = planned(experiment, corpus)
    assert not said_before_a_report_of(items), "the new report has them"
    copy = folder.with_name("toy-before-1")
    (line,) = said_before_a_report_of(items[:1])
    assert line == f"1 run of the report before has numbers that exist nowhere else: it is kept as {copy}"
    assert {name: (copy / name).read_text() for name in before} == before
    shutil.rmtree(folder)
    assert [item.state for item in planned(experiment, corpus)] == ["recorded"] * 2


def test_a_run_without_the_fine_tuning_that_is_asked_for_is_made(corpus, own_home, tmp_path, monkeypatch):
    monkeypatch.setenv("ALBERT_LAB_TASKS", str(tmp_path / "tasks"))
    toy_task("sst2", tmp_path / "tasks")
    (item,) = planned(toy({"dropout": ["0"]}), corpus, tasks=["sst2"])
    rows = {"results.csv": f"run\n{item.run.name}\n", "finetuning.csv": f"run,identity\n{item.run.name},of-others\n"}
    folder = tmp_path / "reports" / "toy"
    folder.mkdir(parents=True)
    for name, text in rows.items():
        (folder / name).write_text(text)
    records = recorded.read([tmp_path / "reports"], print)
    assert records.has(item.run, [])
    assert not records.has(item.run, ["sst2"])
    ((task, seed),) = downstream.wanted(item.run.config, ["sst2"])
    identity = identity_of(item.run.name, item.run.config, task, seed)
    (folder / "finetuning.csv").write_text(f"run,identity\n{item.run.name},{identity}\n")
    assert recorded.read([tmp_path / "reports"], print).has(item.run, ["sst2"])


def test_a_parent_that_is_only_recorded_is_made_again_for_its_child(corpus, own_home, runs_here):
    experiment = toy({"model.num_layers": ["1", "2"]}, start_from=[CHAIN])
    written(experiment, planned(experiment, corpus, "model.num_layers=1"))
    shutil.rmtree(paths.runs())
    parent, child = planned(experiment, corpus)
    assert (parent.state, child.state) == ("recorded", "missing")
    assert sweep.execute([parent, child], sweep.Options()).code == 0
    assert (states.state(parent.run.folder), states.state(child.run.folder)) == ("done", "done")


def test_of_a_curve_in_several_reports_one_is_taken(tmp_path):
    for place in ("b", "a"):
        (tmp_path / place).mkdir()
        (tmp_path / place / "curves.csv").write_text(f"run,from\nx,{place}\nx,{place}\n")
    assert recorded.read([tmp_path], print).curves["x"] == [{"run": "x", "from": "a"}] * 2


def test_the_tasks_of_a_run_in_several_reports_are_joined(tmp_path):
    for place, task in (("a", "mnli"), ("b", "race")):
        (tmp_path / place).mkdir()
        (tmp_path / place / "results.csv").write_text(f"run,sop_accuracy,{task}\nx,0.5,0.25\n")
        (tmp_path / place / "finetuning.csv").write_text(f"run,task,identity\nx,{task},{task}-0\nx,rte,rte-0\n")
    found = recorded.read([tmp_path], print)
    assert found.results["x"] == [{"run": "x", "sop_accuracy": "0.5", "mnli": "0.25", "race": "0.25"}]
    assert [row["task"] for row in found.tunings["x"]] == ["mnli", "rte", "race"]


def test_a_cell_that_is_empty_in_one_report_is_filled_by_another(tmp_path):
    for place, cell in (("a", ""), ("b", "0.4")):
        (tmp_path / place).mkdir()
        (tmp_path / place / "results.csv").write_text(f"run,mnli\nx,{cell}\n")
    assert recorded.read([tmp_path], print).results["x"] == [{"run": "x", "mnli": "0.4"}]


def test_an_empty_table_holds_no_run(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / results.LAYERS).write_text("\n")
    assert recorded.read([tmp_path], print).layers == {}
