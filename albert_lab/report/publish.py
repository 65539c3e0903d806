"""Publishing a report: a deliberate copy into a folder that is committed, and the pages of that folder."""

import shutil
from pathlib import Path

from albert_lab.errors import ConfigError
from albert_lab.report import overview, report
from albert_lab.studies import study


def publish(folder: Path, root: Path, *, replace: bool = False) -> Path:
    """Copy a report below a folder of published reports, rebuild it there with the pages of all; its report.md.

    Args:
        folder: the report.
        root: the folder of published reports; the report goes to `<root>/<scale>-<corpus>/<name>`.
        replace: also where the report that is published there has runs that this one lacks.

    Raises:
        ConfigError: no report, or one that would remove published runs.
    """
    found = study.read(folder)
    target = root / f"{found.scale}-{found.corpus}" / folder.resolve().name
    if target.resolve() != folder.resolve():
        if target.exists():
            lost = {run.name for run in study.read(target).runs} - {run.name for run in found.runs}
            if lost and not replace:
                raise ConfigError(
                    f"{target} has {len(lost)} runs that {folder} lacks; --replace publishes it all the same"
                )
            shutil.rmtree(target)
        shutil.copytree(folder, target)
    written = report.rebuild(target)
    overview.write(root)
    return written
