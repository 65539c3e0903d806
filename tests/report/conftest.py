from functools import cache

import pytest
from toy_reports import toy_report

from albert_lab.analysis import analysis
from albert_lab.studies import experiment


@pytest.fixture(scope="session")
def full(tmp_path_factory):
    """The folder of a full toy report of three seeds, and its analysis, by the name of its experiment."""

    @cache
    def of(name: str):
        folder = toy_report(tmp_path_factory.mktemp("full") / name, experiment.named(name), 3, full=True)
        return folder, analysis.read(folder)

    return of
