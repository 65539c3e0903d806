"""The paper's Table 14: its fine-tuning settings for each task, next to those of conf/task/."""

from pathlib import Path
from typing import Any

from omegaconf import OmegaConf
from tabulate import tabulate

from albert_lab.tasks.defaults import FULL_SCALE
from albert_lab.tasks.task import load_task

PRINTED = Path(__file__).with_name("table14.yaml")
_NOTES = """\
A cell that differs from the paper's is marked with *, the paper's value behind it. Rates (LR), steps of training (TS)
and of warm-up (WS), batches (BSZ) and lengths in tokens (MSL) are those of scale=paper; the smaller scales set their
own in conf/task/. ALBERT DR is the dropout of hidden states and of attention alike, Classifier DR the one before the
output layer. The paper's settings are those of ALBERT-xxlarge, version 1."""


def compare() -> list[dict[str, Any]]:
    """One row per task of Table 14: each setting as configured, as printed in the paper, and whether they differ."""
    printed: Any = OmegaConf.to_container(OmegaConf.load(PRINTED))
    rows = []
    for name, cells in printed["rows"].items():
        task = load_task(name)
        settings = task.at(FULL_SCALE)
        row: dict[str, Any] = {"task": name, "title": task.title}
        for key, cell in zip(printed["keys"], cells, strict=True):
            ours, paper = getattr(settings, key), float(cell)
            row[key] = {"configured": ours, "paper": paper, "differs": ours != paper}
        rows.append(row)
    return rows


def text(rows: list[dict[str, Any]]) -> str:
    printed: Any = OmegaConf.to_container(OmegaConf.load(PRINTED))
    body = [[row["title"], *(_cell(row[key]) for key in printed["keys"])] for row in rows]
    table = tabulate(body, headers=["", *printed["headings"]], tablefmt="simple", disable_numparse=True)
    differing = sum(row[key]["differs"] for row in rows for key in printed["keys"])
    count = len(rows) * len(printed["keys"])
    return f"{table}\n\n{differing} of {count} settings differ from the paper's.\n{_NOTES}"


def _cell(setting: dict[str, Any]) -> str:
    mark = f" * ({setting['paper']:g})" if setting["differs"] else ""
    return f"{setting['configured']:g}{mark}"
