import errno
import os
import shutil
from dataclasses import replace

import pytest
from toy_reports import toy_report

from albert_lab.errors import ConfigError, DamagedFileError, WriteError
from albert_lab.report.publish import publish
from albert_lab.runs import reported
from albert_lab.studies import experiment

pytestmark = pytest.mark.usefixtures("empty_figures")


@pytest.fixture
def folder(tmp_path):
    return toy_report(tmp_path / "own" / "sop-vs-nsp", experiment.named("sop-vs-nsp"), seeds=1)


def test_a_report_is_not_published_into_itself(folder):
    before = sorted(folder.rglob("*"))
    with pytest.raises(ConfigError, match="is inside the report itself"):
        publish(folder, folder)
    assert sorted(folder.rglob("*")) == before


def test_only_the_records_the_text_and_its_pictures_are_published(folder, tmp_path):
    target = publish(folder, tmp_path / "public").parent
    assert {file.suffix for file in target.iterdir() if file.is_file()} == {".json", ".yaml", ".md", ".png"}


def test_a_full_disk_leaves_the_published_report_unchanged(folder, tmp_path, monkeypatch):
    target = publish(folder, tmp_path / "public").parent
    before = {file: file.read_bytes() for file in target.parent.rglob("*") if file.is_file()}

    def full(_source, target):
        target.mkdir()
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(shutil, "copytree", full)
    with pytest.raises(WriteError, match="sop-vs-nsp could not be written: the disk is full"):
        publish(folder, tmp_path / "public")
    assert {file: file.read_bytes() for file in target.parent.rglob("*") if file.is_file()} == before


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ('"scale": "smoke"', '"scale": "../../victim"', "'../../victim' is not a name"),
        ('"corpus": "sotu"', '"corpus": ""', "'' is not a name"),
        ('"run":', '"ran":', "run is missing"),
    ],
)
def test_a_study_with_invalid_or_incomplete_points_is_refused(folder, tmp_path, before, after, said):
    file = folder / "study.json"
    assert before in file.read_text()
    file.write_text(file.read_text().replace(before, after))
    with pytest.raises(DamagedFileError, match=said):
        publish(folder, tmp_path / "public")
    assert not (tmp_path / "public").exists()


def test_published_fine_tunings_are_removed_only_on_request(tmp_path):
    full = toy_report(tmp_path / "full" / "sop-vs-nsp", experiment.named("sop-vs-nsp"), seeds=1, full=True)
    bare = toy_report(tmp_path / "bare" / "sop-vs-nsp", experiment.named("sop-vs-nsp"), seeds=1, full=True)
    for file in (bare / "runs").glob("*.json"):
        reported.write(bare, replace(reported.read(file), columns=()))
    target = publish(full, tmp_path / "public").parent
    with pytest.raises(ConfigError, match=r"has 0 runs and [1-9]\d* fine-tunings that .* lacks; --replace"):
        publish(bare, tmp_path / "public")
    assert any(run.columns for run in reported.read_all(target))
    publish(bare, tmp_path / "public", replace=True)
    assert not any(run.columns for run in reported.read_all(target))


def test_a_damaged_published_report_is_replaced_only_on_request(folder, tmp_path):
    target = publish(folder, tmp_path / "public").parent
    (target / "study.json").write_text("{")
    with pytest.raises(DamagedFileError):
        publish(folder, tmp_path / "public")
    publish(folder, tmp_path / "public", replace=True)
    assert (target / "study.json").read_text() == (folder / "study.json").read_text()


@pytest.mark.parametrize("make", [lambda file: file.symlink_to("/etc/hostname"), os.mkfifo])
def test_a_report_with_a_link_or_no_ordinary_file_is_refused(folder, tmp_path, make):
    make(folder / "runs" / "figure.svg")
    with pytest.raises(ConfigError, match=r"figure\.svg is a link or no ordinary file"):
        publish(folder, tmp_path / "public")
    assert not (tmp_path / "public").exists()
