"""The forest plot: the paper's effect beside ours with its interval, for every sentence with a number of the paper."""

import textwrap
from collections import Counter
from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from albert_lab.analysis.answers import word
from albert_lab.analysis.sentences import Sentence
from albert_lab.analysis.verdicts import CANNOT_TELL, NOT_SUPPORTED, SUPPORTED, UNDECIDED
from albert_lab.figures import drawing

POINTS, PERCENT = "difference in points (right of 0: as the sentence says)", "accuracy in percent (chance is 50)"
LINE_INCHES, WIDTH_INCHES, QUOTE = 0.22, 9.0, 78
OURS, PAPER = drawing.COLOURS[0], drawing.COLOURS[1]


def claims(lines: Sequence[Sentence]) -> Figure | None:
    """Differences in points, and levels in percent; a line a sentence, with its verdict at the right.

    Sentences without a number in the paper, or without an interval here, are left out.
    """
    groups: dict[str, list[Sentence]] = {}
    for line in lines:
        if line.report and not line.deciding[["low", "paper"]].isna().any():
            groups.setdefault(_unit(line), []).append(line)
    groups = {unit: groups[unit] for unit in (PERCENT, POINTS) if unit in groups}
    if not groups:
        return None
    counts = [len(group) for group in groups.values()]
    figure = Figure(figsize=(WIDTH_INCHES, LINE_INCHES * sum(counts) + 0.6 * len(counts)), layout="constrained")
    panels = figure.subplots(len(groups), 1, height_ratios=counts, squeeze=False)[:, 0]
    for panel, (unit, group) in zip(panels, groups.items(), strict=True):
        _draw(panel, unit, group)
    said = Counter(line.verdict for line in lines if line.report)
    not_run = len(lines) - said.total()
    title = (
        f"Of {len(lines)} sentences of the paper, {said[SUPPORTED]} hold here (yes), {said[NOT_SUPPORTED]} not (NO),"
        f" {said[UNDECIDED]} undecided; these models cannot tell {said[CANNOT_TELL]}; {not_run} not run"
    )
    drawn = {line.quote for group in groups.values() for line in group}
    others = Counter(word(line.verdict) for line in lines if line.report and line.quote not in drawn)
    kinds = ", ".join(f"{number} {verdict}" for verdict, number in others.items())
    missing = [f"{not_run} sentences that were not run"] * bool(not_run)
    missing += [f"{others.total()} ({kinds}) without an effect in points or percent in the paper"] * bool(others)
    return drawing.finish(figure, title, list(panels), missing)


def _unit(line: Sentence) -> str:
    assert line.report is not None
    kind, unit = line.deciding["kind"], line.report[1].unit(line.deciding["metric"])
    if unit != "%" or kind == "ratio":
        return ""
    return PERCENT if kind == "level" else POINTS


def _draw(panel: Axes, unit: str, group: Sequence[Sentence]) -> None:
    for place, line in enumerate(group):
        test = line.deciding
        ends = [[test["effect"] - test["low"]], [test["high"] - test["effect"]]]
        panel.errorbar(
            test["effect"],
            place,
            xerr=ends,
            fmt="o",
            capsize=3,
            color=OURS,
            alpha=1 if line.can_tell else 0.45,
            label="here (pale: these models cannot tell)",
        )
        panel.plot(test["paper"], place, "D", color=PAPER, markerfacecolor="none", label="paper")
        panel.annotate(word(line.verdict), (1.01, place), xycoords=("axes fraction", "data"), va="center", fontsize=7)
    quotes = [textwrap.shorten(line.quote, QUOTE, placeholder=" …") for line in group]
    panel.set_yticks(range(len(group)), quotes, fontsize=7)
    panel.set_ylim(len(group) - 0.5, -0.5)
    panel.set_xlabel(unit)
    panel.axvline(0 if unit == POINTS else 50, color=drawing.FLOOR, linewidth=1)
