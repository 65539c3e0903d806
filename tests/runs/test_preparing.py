from toy import toy_config

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
