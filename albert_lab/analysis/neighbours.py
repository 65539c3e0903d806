"""The other reports of a report's scale and text: what they say of how far runs vary, and of which
tasks count.
"""

from functools import lru_cache
from pathlib import Path

from albert_lab.analysis.frame import Frame, frame
from albert_lab.errors import ConfigError
from albert_lab.messages import to_stderr
from albert_lab.runs.reported import ReportedRun
from albert_lab.studies import study as studies
from albert_lab.studies.study import EXPERIMENT, STUDY, Study


def neighbours(folder: Path, study: Study) -> tuple[Frame, ...]:
    """The tables of the reports beside a report's folder that have its scale, its text and its
    start.

    Rows that are trained from nothing and rows that start from a trained encoder are no neighbours.
    The tables have numbers, and tasks by block of examples; nothing else by document, no curves and
    no layers.
    """
    tables = []
    for file in sorted(folder.resolve().parent.glob(f"*/{STUDY}")):
        beside = file.parent
        # A study that runs has no experiment yet.
        if beside == folder.resolve() or not (beside / EXPERIMENT).exists():
            continue
        try:
            other, table = _read(beside, file.stat().st_mtime_ns)
        except ConfigError as error:
            to_stderr(f"intervals are computed without {beside}: {error}")
            continue
        if _kind(other) == _kind(study):
            tables.append(table)
    return tuple(tables)


def _kind(study: Study) -> tuple[str, str, str]:
    start = study.experiment.start_from
    return study.scale, study.corpus, start if isinstance(start, str) else ""


@lru_cache(maxsize=256)
def _read(folder: Path, written: int) -> tuple[Study, Frame]:
    """A study, as it was written at a time, with its table; kept, since its neighbours read it
    too.
    """
    study = studies.read(folder)
    thin = study.model_copy(update={"runs": tuple(map(_thin, study.runs))})
    return study, frame(thin)


def _thin(run: ReportedRun) -> ReportedRun:
    """A run with its scores and fine-tunings alone."""
    record = run.record.model_copy(update={"documents": {}})
    return run.model_copy(update={"record": record, "curve": (), "layers": ()})
