import gc
import os
from functools import cache
from pathlib import Path
from unittest.mock import Mock

import pytest
from command import launch_here, own_signals
from hypothesis import settings
from toy import write_corpus
from toy_reports import compose_figure, toy_report

from albert_lab.analysis import analysis
from albert_lab.figures import drawing
from albert_lab.studies import execute, experiment, prices

os.environ["HF_HUB_OFFLINE"] = "1"
os.environ.setdefault("OMP_NUM_THREADS", "1")  # toy tensors: more threads are slower

# with torch, sympy and pandas loaded, a collection takes a third of a second
gc.set_threshold(200_000, 50, 100)

# The same examples in every test run; a slow machine does not fail a test.
settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.load_profile("repeatable")


@pytest.fixture(scope="session", autouse=True)
def isolated_home(tmp_path_factory):
    """A folder outside the checkout for everything that the commands write."""
    folder = tmp_path_factory.mktemp("home")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ALBERT_LAB_HOME", str(folder))
        patch.setenv("ALBERT_LAB_PUBLISHED", str(folder / "published"))
        for name in ("ALBERT_LAB_CACHE", "ALBERT_LAB_TASKS"):
            patch.delenv(name, raising=False)
        yield folder


@pytest.fixture
def own_home(tmp_path, monkeypatch, isolated_home):
    """A fresh folder for runs; prepared text is shared."""
    monkeypatch.setenv("ALBERT_LAB_CACHE", str(isolated_home / "cache"))
    monkeypatch.setenv("ALBERT_LAB_HOME", str(tmp_path))
    return tmp_path


@pytest.fixture
def empty_figures(monkeypatch):
    """Composes figures but writes empty files, since drawing takes a second for each."""
    monkeypatch.setattr(drawing, "write", compose_figure)


@pytest.fixture
def runs_here(monkeypatch):
    """Makes the runs of a sweep in this process, untimed, which avoids starting child processes."""
    monkeypatch.setattr(execute, "launch", launch_here)
    monkeypatch.setattr(prices, "time_steps", Mock())
    with own_signals():
        yield


@pytest.fixture(scope="session")
def corpus(tmp_path_factory):
    """Folder of the toy corpus."""
    return write_corpus(tmp_path_factory.mktemp("corpus"))


@pytest.fixture(scope="session")
def shared_data():
    """Folder of the large texts and models that are not part of the project."""
    folder = os.environ.get("ALBERT_LAB_SHARED_DATA")
    if not folder:
        pytest.skip("ALBERT_LAB_SHARED_DATA is not set")
    return Path(folder)


@pytest.fixture(scope="session")
def full(tmp_path_factory):
    """The folder of a full toy report of three seeds, and its analysis, by the name of its
    experiment.
    """

    @cache
    def of(name: str):
        folder = toy_report(
            tmp_path_factory.mktemp("full") / name, experiment.named(name), 3, full=True
        )
        return folder, analysis.read(folder)

    return of
