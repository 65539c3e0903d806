import pytest
from toy_tasks import toy_task

from albert_lab.errors import ConfigError, MissingDataError
from albert_lab.runs import columns
from albert_lab.runs.reported import AVERAGE, AVERAGED
from albert_lab.studies import experiment


def test_a_column_without_task_files_is_left_out_and_said(tmp_path, monkeypatch):
    monkeypatch.setenv("ALBERT_LAB_TASKS", str(tmp_path))
    toy_task("mnli", tmp_path)
    said: list[str] = []
    assert columns.choose_tasks(["mlm_accuracy", *AVERAGED, AVERAGE], said.append) == {"mnli": "mnli"}
    (line,) = said
    assert all(name in line for name in ("squad1, squad2, sst2, race", "data fetch", "squad, glue, race"))


def test_the_file_of_an_own_task_fills_its_column_and_needs_its_data(tmp_path, monkeypatch):
    monkeypatch.setenv("ALBERT_LAB_TASKS", str(tmp_path / "data"))
    text = "{kind: classification, data: {train: a.tsv, dev: b.tsv}, format: {text_a: text, labels: [n, y]}}"
    (tmp_path / "mine.yaml").write_text(text)
    study = "{title: t, source: s, grid: {dropout: [0, 0.1]}, columns: [mlm_accuracy, mine.yaml], claims: [{quote: q,"
    study += " metric: mine, check: greater, row: {dropout: 0}, than: {dropout: 0.1}}]}"
    (tmp_path / "study.yaml").write_text(study)
    result = experiment.read(tmp_path / "study.yaml")
    assert result.columns == ("mlm_accuracy", "mine")
    assert result.tasks == {"mine": str(tmp_path / "mine.yaml")}
    with pytest.raises(MissingDataError, match=r"mine: no train data at .*a\.tsv"):
        columns.choose_tasks(result.columns, print, own=result.own_tasks)
    for name in ("a.tsv", "b.tsv"):
        (tmp_path / name).write_text("text\tlabel\nb\tn\nc\ty\n")
    assert columns.choose_tasks(result.columns, print, own=result.own_tasks) == result.tasks


def test_a_named_task_must_have_its_data(tmp_path, monkeypatch):
    monkeypatch.setenv("ALBERT_LAB_TASKS", str(tmp_path))
    with pytest.raises(MissingDataError, match=r"mnli: no train data at .*train\.tsv"):
        columns.choose_tasks([], print, ["mnli"])
    with pytest.raises(ConfigError, match=r"is unknown \(allowed: .*mnli"):
        columns.choose_tasks([], print, ["mnl"])
