"""A report as files: its records, the text, the page, the picture, and the numbers as CSV."""

import json
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from pydantic_core import to_jsonable_python

from albert_lab.analysis.analysis import Analysis, analyse, read
from albert_lab.analysis.frame import as_csv
from albert_lab.errors import ConfigError
from albert_lab.figures import figures
from albert_lab.messages import printable, to_stderr
from albert_lab.report import markdown, page, wording
from albert_lab.storage import write_atomically
from albert_lab.studies import study as studies
from albert_lab.studies.plan import Plan
from albert_lab.studies.study import TEXTS, collect

REPORT, PAGE, NUMBERS = TEXTS
_PICTURE = re.compile(r"^!\[.*\]\(([\w-]+)\.png\)$", re.MULTILINE)


def write(folder: Path, analysis: Analysis) -> Path:
    """Write an analysed study and its report into a folder; return the path of the Markdown.

    Raises: see _install().
    """
    with TemporaryDirectory() as made:
        studies.write(Path(made), analysis.study)
        files = [*_write(Path(made), analysis), *studies.records(Path(made))]
        former = _picture_shown(folder)
        with suppress(ConfigError):  # there is none, or a damaged one, whose files are not known
            former += studies.records(folder)
        _install(Path(made), folder, files, former)
    return folder / REPORT


def write_of(plan: Plan, failures: Mapping[str, str], command: str) -> Analysis | None:
    """Collect the runs of a plan that are done, and write their report; None if there are none."""
    study = collect(plan.updated(), failures, command, to_stderr)
    if not study.runs:
        return None
    analysis = analyse(study, plan.report_folder)
    write(plan.report_folder, analysis)
    return analysis


def rebuild(folder: Path) -> Path:
    """Write report.md, its page, picture and table of numbers anew from the folder's records;
    return report.md.

    Raises:
        ConfigError: a file of the report is missing or cannot be read.
    """
    analysis = read(folder)
    with TemporaryDirectory() as made:
        _install(Path(made), folder, _write(Path(made), analysis), _picture_shown(folder))
    return folder / REPORT


def _write(folder: Path, analysis: Analysis) -> list[Path]:
    """Write the text of a study, its page, picture and table of numbers; return their files."""
    title = wording.title(analysis)
    picture = figures.draw_first(folder, analysis, title)
    text = markdown.render(analysis, (picture, title) if picture else None)
    contents = {NUMBERS: as_csv(analysis.frame.numbers), REPORT: text}
    contents[PAGE] = page.page(printable(analysis.experiment.title), text, folder)
    for name, content in contents.items():
        write_atomically(folder / name, content)
    return [folder / name for name in (*contents, picture) if name]


def _picture_shown(folder: Path) -> list[Path]:
    """The picture that the text in a folder shows; empty without one."""
    text = folder / REPORT
    names = _PICTURE.findall(text.read_text(errors="replace")) if text.is_file() else []
    return [folder / f"{name}.png" for name in names if name in figures.FIGURES]


def _install(made: Path, folder: Path, files: Sequence[Path], former: Sequence[Path]) -> None:
    """Put files of a report, which was made elsewhere, into its folder, and touch no file there
    that is not a report's.

    Args:
        former: the files of the report that was there; those that the new one lacks are removed.

    Raises:
        ConfigError: a link, a folder, or a file of the user is where a file of the report belongs.
    """
    targets = {folder / file.relative_to(made): file for file in files}
    studies.check_free(folder, (target.name for target in targets if target.parent == folder))
    for target in targets:
        if target.is_dir():
            raise ConfigError(
                f"{target} is a folder, and a file of the report has this name: move it"
            )
        if target.parent != folder and target.parent.is_symlink():
            raise ConfigError(
                f"{target.parent} is a link, and a report writes in its own folder alone: remove it"
            )
    for target, file in targets.items():
        write_atomically(target, file.read_bytes())
    for file in former:
        if file not in targets:
            file.unlink(missing_ok=True)


def as_json(name: str, analysis: Analysis) -> str:
    """The summary and the verdicts of a study of this name as one JSON document; missing numbers
    are null.
    """
    rows = list[dict[str, Any]]()
    axes: Any = analysis.frame.rows.set_index("row")[analysis.study.axes]
    labels = axes.to_dict("index")
    for row, lines in analysis.summary.groupby(level="row", sort=False):
        scores = lines.droplevel("row").to_dict("index")
        rows.append({"row": row, **labels.get(row, {}), "scores": scores})
    content = {
        "experiment": name,
        "title": analysis.experiment.title,
        "answer": wording.answer(analysis),
        "rows": rows,
        "verdicts": analysis.verdicts,
    }
    return json.dumps(with_null(content), indent=2)


def with_null(content: Any) -> Any:
    """Plain data in which NaN is None, for JSON."""
    return to_jsonable_python(content, inf_nan_mode="null")
