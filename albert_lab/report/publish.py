"""Publishing a report: a deliberate copy into a folder that is committed, and the pages of that folder."""

import shutil
from collections.abc import Iterable
from pathlib import Path

from albert_lab.errors import ConfigError
from albert_lab.report import overview, report
from albert_lab.runs.reported import ReportedRun
from albert_lab.storage import replacing, writing
from albert_lab.studies import study

# What `albert-lab report` makes again from the records, besides the text and its pictures.
DERIVED = (".csv", ".html", ".svg", ".tex")


def publish(folder: Path, root: Path, *, replace: bool = False) -> Path:
    """Copy a report into a folder of published reports, rebuild it there with the summary pages; return its report.md.

    Only its records, report.md and PNG figures are published.

    Args:
        root: the folder of published reports; the report goes to `<root>/<scale>-<corpus>/<name>`.
        replace: also replace a published report that is damaged, or has runs or fine-tunings which this one lacks.

    Raises:
        ConfigError: not a report, a link in it, published runs would be removed, or the target is inside the report.
    """
    source = study.read(folder)
    target = root / f"{source.scale}-{source.corpus}" / folder.resolve().name
    if target.resolve() != folder.resolve():
        _refuse_inside(target, folder)
        if target.exists() and not replace:
            _refuse_losses(folder, source.runs, target, study.read(target).runs)
        _copy(folder, target)
    written = report.rebuild(target)
    for file in target.iterdir():
        if file.suffix in DERIVED:
            file.unlink()
    overview.write(root)
    return written


def _refuse_losses(folder: Path, runs: Iterable[ReportedRun], target: Path, published: Iterable[ReportedRun]) -> None:
    here = {run.name: run.identities for run in runs}
    before = {run.name: run.identities for run in published}
    lacking = len(before.keys() - here.keys())
    tunings = sum(len(identities - here.get(name, set())) for name, identities in before.items())
    if lacking or tunings:
        raise ConfigError(
            f"{target} has {lacking} runs and {tunings} fine-tunings that {folder} lacks; --replace publishes it all"
            " the same"
        )


def _refuse_inside(target: Path, folder: Path) -> None:
    if target.resolve().is_relative_to(folder.resolve()):
        raise ConfigError(f"{target} is inside the report itself: name a folder outside of {folder}")


def _copy(folder: Path, target: Path) -> None:
    _refuse_links(folder)
    with writing(target), replacing(target) as partial:
        shutil.copytree(folder, partial)


def _refuse_links(folder: Path) -> None:
    """Check that a copy of a folder has its own files alone, none of another place that a link leads to."""
    for file in folder.rglob("*"):
        if file.is_symlink() or not (file.is_file() or file.is_dir()):
            raise ConfigError(f"{file} is a link or no ordinary file: remove it, or replace it by a copy of the file")
