"""Publishing a report: a deliberate copy of its records into a folder that is committed, and the scoreboard there."""

from pathlib import Path

from albert_lab.analysis.analysis import read
from albert_lab.errors import ConfigError
from albert_lab.report import report, scoreboard
from albert_lab.studies.study import STUDY, Study

# What `albert-lab report` makes again from the records, besides the text and its picture.
DERIVED = (".csv", ".html", ".tex")


def publish(folder: Path, root: Path, *, replace: bool = False) -> Path:
    """Write a report below a folder of published reports, as `<root>/<scale>-<corpus>/<name>`; return its report.md.

    Raises:
        ConfigError: not a report; or runs or fine-tunings of the published one would be lost, without replace.
    """
    analysis = read(folder)
    target = root / f"{analysis.study.scale}-{analysis.study.corpus}" / folder.resolve().name
    if (target / STUDY).is_file() and not replace:
        lost = _identities(read(target).study) - _identities(analysis.study)
        if lost:
            raise ConfigError(
                f"{target} has {len(lost)} runs and fine-tunings that {folder} lacks: --replace drops them"
            )
    written = report.write(target, analysis)
    for file in [file for file in target.iterdir() if file.suffix in DERIVED]:
        file.unlink()
    scoreboard.write(root)
    return written


def _identities(study: Study) -> set[str]:
    tuned = {record.identity for run in study.runs for column in run.columns for record in column.finetunings}
    return {run.name for run in study.runs} | tuned
