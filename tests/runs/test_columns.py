import pytest
from toy import toy_config, write_corpus
from toy_tasks import toy_task

from albert_lab.config.compose import load
from albert_lab.errors import ConfigError, MissingDataError
from albert_lab.runs import columns
from albert_lab.runs.reported import AVERAGE, AVERAGED
from albert_lab.studies import experiment


def test_a_column_is_filled_by_the_official_task_if_its_data_exists(tmp_path, monkeypatch):
    monkeypatch.setenv("ALBERT_LAB_TASKS", str(tmp_path))
    toy_task("mnli", tmp_path)
    chosen = columns.choose_tasks(["mlm_accuracy", *AVERAGED, AVERAGE], load(["scale=smoke"]))
    assert chosen == {
        "squad1": "cloze-span",
        "squad2": "cloze-span-unanswerable",
        "mnli": "mnli",
        "sst2": "era",
        "race": "next-paragraph",
    }


def test_a_column_without_data_or_replacement_has_no_task(tmp_path, monkeypatch):
    monkeypatch.setenv("ALBERT_LAB_TASKS", str(tmp_path))
    assert columns.choose_tasks(["qnli", "mnli", "wnli"], load(["scale=smoke"])) == {"mnli": "pair-relation"}


def test_a_task_made_of_the_corpus_can_be_a_column(tmp_path, monkeypatch):
    monkeypatch.setenv("ALBERT_LAB_TASKS", str(tmp_path))
    assert columns.choose_tasks(["mlm_accuracy", "era"], load(["scale=smoke"])) == {"era": "era"}


def test_the_file_of_an_own_task_fills_its_column_and_needs_its_data(tmp_path, monkeypatch):
    monkeypatch.setenv("ALBERT_LAB_TASKS", str(tmp_path / "data"))
    text = "{kind: classification, data: {train: a.tsv, dev: a.tsv}, format: {text_a: text, labels: [n, y]}}"
    (tmp_path / "mine.yaml").write_text(text)
    study = "{title: t, source: s, grid: {dropout: [0, 0.1]}, columns: [mlm_accuracy, mine.yaml], claims: [{quote: q,"
    study += " metric: mine, check: greater, row: {dropout: 0}, than: {dropout: 0.1}}]}"
    (tmp_path / "study.yaml").write_text(study)
    result = experiment.read(tmp_path / "study.yaml")
    assert result.columns == ("mlm_accuracy", "mine")
    assert result.tasks == {"mine": str(tmp_path / "mine.yaml")}
    with pytest.raises(MissingDataError, match=r"mine: no train data at .*a\.tsv"):
        columns.choose_tasks(result.columns, load(["scale=smoke"]), own=result.own_tasks)
    (tmp_path / "a.tsv").write_text("text\tlabel\nb\tn\nc\ty\n")
    assert columns.choose_tasks(result.columns, load(["scale=smoke"]), own=result.own_tasks) == result.tasks


def test_a_corpus_without_years_has_no_era(corpus):
    assert columns.choose_tasks(["sst2"], toy_config(corpus)) == {"sst2": "document-half"}


def test_a_named_task_must_have_its_data(tmp_path, monkeypatch):
    monkeypatch.setenv("ALBERT_LAB_TASKS", str(tmp_path))
    with pytest.raises(MissingDataError, match=r"mnli: no train data at .*train\.tsv"):
        columns.choose_tasks([], load(["scale=smoke"]), ["mnli"])
    with pytest.raises(ConfigError, match="did you mean mnli"):
        columns.choose_tasks([], load(["scale=smoke"]), ["mnl"])


def test_a_task_that_the_corpus_cannot_provide_is_replaced(own_home):
    # Its held-out messages give no dev set of both eras.
    config = load(["scale=smoke", "corpus=sotu-before-1900"])
    chosen = columns.choose_tasks(["mnli", "sst2"], config)
    assert chosen["sst2"] == "era"
    said: list[str] = []
    assert columns.prepare_tasks(chosen, config, said.append) == {"mnli": "pair-relation", "sst2": "document-half"}
    assert "Era: the corpus does not provide this task; Document half takes its place" in said


def test_tasks_that_the_corpus_cannot_provide_are_known_once_it_is_prepared(tmp_path, own_home, monkeypatch):
    monkeypatch.setenv("ALBERT_LAB_CACHE", str(own_home / "cache"))
    config = toy_config(write_corpus(tmp_path / "text"))
    chosen = columns.choose_tasks(AVERAGED, config)
    assert columns.find_tasks(chosen, config) == chosen, "nothing is known before"
    assert not (own_home / "cache").exists()
    result = columns.prepare_tasks(chosen, config, lambda _line: None)
    before = sorted((own_home / "cache").rglob("*"))
    assert columns.find_tasks(chosen, config) == result != chosen
    assert sorted((own_home / "cache").rglob("*")) == before


def test_a_corpus_without_any_task_is_known_once_it_is_prepared(tmp_path, own_home, monkeypatch):
    monkeypatch.setenv("ALBERT_LAB_CACHE", str(own_home / "cache"))
    (tmp_path / "text").mkdir()
    (tmp_path / "text" / "one.txt").write_text("The cat sat. It was red.\n")
    config = toy_config(tmp_path / "text", "corpus.documents=file", "corpus.dev_share=0.999")
    said: list[str] = []
    for _ in range(2):
        assert columns.prepare_tasks({"mnli": "pair-relation"}, config, said.append) == {}
        assert said[-1].endswith("corpus=files has too little held-out text for tasks")
    assert columns.find_tasks({"mnli": "pair-relation"}, config) == {}
    assert columns.find_tasks({"sst2": "sst2"}, config) == {"sst2": "sst2"}, "a task with data of its own"
