import pytest
from toy import toy_config, write_corpus

from albert_lab import paths, registry
from albert_lab.config.launcher import ByHandLauncher
from albert_lab.model.blocks import ACTIVATIONS
from albert_lab.runs import preparing
from albert_lab.runs import run as runs
from albert_lab.studies.launchers import by_hand


def test_a_preparation_has_the_own_options_of_its_command(corpus, own_home, tmp_path, monkeypatch):
    folder = runs.create(runs.plan(toy_config(corpus)))
    options, tasks = [], []

    def prepare_tasks(asked, _config, _say):
        options.extend(paths.own_conf())
        tasks.extend(asked)

    monkeypatch.setattr(preparing, "prepare_all", lambda *_: None)
    monkeypatch.setattr(preparing.columns, "prepare_tasks", prepare_tasks)
    own = tmp_path / "conf"
    own.mkdir()
    include = tmp_path / "own.py"
    include.write_text("from albert_lab.extend import activation\nactivation('mine')(abs)\n")
    arguments = [str(folder), "--tasks", "mine", "--conf", str(own), "--include", str(include)]
    with registry.separate():
        assert preparing.main(arguments) == 0
        assert ACTIVATIONS["mine"] is abs
    assert (options, tasks) == ([own], ["mine"])


def test_the_printed_preparation_makes_the_tasks_of_all_runs(tmp_path, monkeypatch, capsys):
    folders = {tmp_path / "a": ["sst2", "--seeds", "0"], tmp_path / "b": ["mnli", "sst2"]}
    monkeypatch.setattr(preparing, "lacking", lambda waiting: list(waiting)[:1])
    settings = ByHandLauncher(name="by-hand", preparation="job")
    by_hand.launch(folders, settings=settings, on_end=lambda *_: True, parents={})
    first, preparation, *_ = capsys.readouterr().out.splitlines()
    assert first.startswith("#")
    assert preparation.partition("--tasks ")[2].split()[:2] == ["sst2", "mnli"]


@pytest.mark.parametrize(("second", "is_told"), [("same-document", True), ("swapped", False)])
def test_a_label_with_far_fewer_pairs_than_asked_is_told(own_home, tmp_path, second, is_told):
    # Only text of a long document has a second segment elsewhere in its document.
    write_corpus(tmp_path / "texts", documents=120, sentences=3)
    write_corpus(tmp_path / "more", documents=12, sentences=14, seed=1).rename(tmp_path / "texts" / "long")
    labels = f"inter_sentence.labels=[{{kind: consecutive, share: 0.5}},{{kind: {second}, share: 0.5}}]"
    lines = []
    preparing.prepare_all([runs.plan(toy_config(tmp_path / "texts", labels))], lines.append)
    told = [line for line in lines if "few segments find a second one" in line]
    assert bool(told) == is_told
    if is_told:
        assert "of the train text are of kind same-document, not 50 %" in told[0]
