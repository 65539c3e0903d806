"""The figures of a ladder: effects against compute with the paper's place, and the top rung predicted and measured."""

import math
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure

from albert_lab.analysis.ladder import ContrastTrend, LadderAnalysis, Measure
from albert_lab.analysis.ladder_paper import PaperEffect
from albert_lab.analysis.trend import Interval
from albert_lab.figures import drawing

TREND, VALIDATION = "ladder-trend", "ladder-validation"
CAPTIONS = {
    TREND: (
        "Left: the effect of each contrast at each rung with its 95 % interval over seeds, the trend as a line, and its"
        " 95 % band, cut off where it would hide the points; the axis is broken before the paper's compute. Middle: the"
        " effect that the trend predicts there, with its 95 % prediction interval; hollow where it says nothing: it"
        " covers both signs, or two scores cannot differ by so much. Right: the paper's own difference, in points;"
        " where it has no such rows, those of its own. The vertical axes differ. Beside longer trends, one of three"
        " rungs has neither band nor prediction: they would hide the others."
    ),
    VALIDATION: (
        "The effect at the top rung as predicted from the lower rungs (with its 95 % prediction interval for what the"
        " top rung's seeds measure) and as measured (with its interval over seeds). On the diagonal both are equal."
    ),
}
_AVERAGE = "Avg"
_OTHER_ROWS: dict[str, Any] = {"color": "#000000", "marker": "d", "markerfacecolor": "none", "linestyle": "none"}
_BAND_ROOM = 0.25  # of the height of all intervals, below and above them
_SHIFT = 0.02  # powers of ten
_MOST_PANELS = 3  # in a row


def draw(folder: Path, analysis: LadderAnalysis) -> list[str]:
    """Draw the figures into a folder; return the names of those that the ladder has data for."""
    functions = {TREND: draw_trends, VALIDATION: draw_validations}
    return [name for name, function in functions.items() if drawing.write(partial(function, analysis), folder, name)]


def draw_trends(analysis: LadderAnalysis) -> Figure | None:
    """A row of panels for each measure: the rungs, the prediction at the paper's compute, the paper's difference."""
    measures = analysis.measures
    if not measures:
        return None
    figure = Figure(figsize=(2.2 * drawing.COLUMN_INCHES, drawing.ROW_INCHES * len(measures)), layout="constrained")
    panels = figure.subplots(len(measures), 3, squeeze=False, width_ratios=[2.4, 1, 1])
    looks = _looks(analysis)
    for measure, (ladder, there, paper) in zip(measures, panels, strict=True):
        lines = analysis.of(measure)
        banded = _banded(lines)
        for place, line in enumerate(lines):
            shift = _SHIFT * (place - (len(lines) - 1) / 2)
            _draw_rungs(ladder, line, looks[line.contrast.words], shift, band=line in banded)
            if line in banded:
                _draw_prediction(there, line, looks[line.contrast.words])
        _set_limits(ladder, lines, banded)
        _mark_compute(ladder, lines, analysis.predicted_log_flops)
        ladder.set_ylabel(f"{measure.label}, {measure.unit}")
        there.set_title(f"the paper's compute,\n{10**analysis.predicted_log_flops:.1e} FLOPs", fontsize="medium")
        for panel in (there, paper):
            panel.set_xticks([])
            panel.set_xlim(-0.7, len(looks) - 0.3)
        _draw_paper(paper, lines, measure, analysis.paper, looks)
        for panel in (ladder, there, paper):
            panel.axhline(0.0, color="#555555", linewidth=0.8)
    drawing.legend_below(figure, [row[0] for row in panels])
    return figure


def draw_validations(analysis: LadderAnalysis) -> Figure | None:
    measures = [measure for measure in analysis.measures if any(line.validation for line in analysis.of(measure))]
    if not measures:
        return None
    columns = min(len(measures), _MOST_PANELS)
    figure, rows = drawing.sheet(math.ceil(len(measures) / columns), columns)
    panels = [panel for row in rows for panel in row]
    for unused in panels[len(measures) :]:
        unused.set_visible(False)
    looks = _looks(analysis)
    for measure, panel in zip(measures, panels, strict=False):
        ends: list[float] = []
        for line in analysis.of(measure):
            if line.validation:
                predicted, measured = line.validation.predicted, line.validation.measured.interval
                look: dict[str, Any] = drawing.style(looks[line.contrast.words]) | {"linestyle": "none"}
                panel.errorbar(
                    predicted.value,
                    measured.value,
                    xerr=[[predicted.value - predicted.low], [predicted.high - predicted.value]],
                    yerr=[[measured.value - measured.low], [measured.high - measured.value]],
                    capsize=3,
                    label=line.contrast.words,
                    **look,
                )
                ends += [measured.low, measured.high, predicted.value]
        panel.axline((min(ends), min(ends)), slope=1, color="#555555", linestyle=(0, (1, 1)), linewidth=1)
        panel.set(title=measure.label, xlabel=f"predicted, {measure.unit}", ylabel=f"measured, {measure.unit}")
    drawing.legend_below(figure, panels[: len(measures)])
    return figure


def _looks(analysis: LadderAnalysis) -> dict[str, int]:
    return {words: index for index, words in enumerate(dict.fromkeys(line.contrast.words for line in analysis.trends))}


def _banded(lines: Sequence[ContrastTrend]) -> list[ContrastTrend]:
    """The trends whose bands and predictions are shown: those of three rungs only where none has more."""
    longer = [line for line in lines if len(line.effects) > 3]
    return longer or list(lines)


def _draw_rungs(panel: Axes, line: ContrastTrend, look_of: int, shift: float, *, band: bool) -> None:
    """Draw effects with their intervals, shifted by some powers of ten so that they do not overlap, and the trend."""
    look = drawing.style(look_of)
    points: dict[str, Any] = look | {"linestyle": "none"}
    x = [10 ** (effect.log_flops + shift) for effect in line.effects]
    intervals = [effect.interval for effect in line.effects]
    reach = [interval.high - interval.value for interval in intervals]
    label = f"{line.contrast.words} ({drawing.counted([effect.n for effect in line.effects])})"
    panel.errorbar(x, [interval.value for interval in intervals], yerr=reach, capsize=2, label=label, **points)
    if line.trend:
        places, fitted = _line(line)
        panel.plot(places, [point.value for point in fitted], color=look["color"], linestyle=look["linestyle"])
        edges = [point.low for point in fitted], [point.high for point in fitted]
        if band:
            panel.fill_between(places, *edges, facecolor=to_rgba(look["color"], 0.12), edgecolor="none")


def _line(line: ContrastTrend) -> tuple[np.ndarray, list[Interval]]:
    """The FLOPs and the trend between the lowest rung and the top, never beyond them."""
    assert line.trend is not None
    places = np.linspace(line.effects[0].log_flops, line.effects[-1].log_flops, 50)
    return 10**places, [line.trend.line(place) for place in places]


def _set_limits(panel: Axes, lines: Sequence[ContrastTrend], banded: Sequence[ContrastTrend]) -> None:
    """Show all intervals, and bands as far as the points stay readable; a note tells how far they go on."""
    intervals = [effect.interval for line in lines for effect in line.effects]
    bands = [point for line in banded if line.trend for point in _line(line)[1]]
    low, high = min(0.0, *(line.low for line in intervals)), max(0.0, *(line.high for line in intervals))
    more = _BAND_ROOM * (high - low)
    if more:
        of_bands = min([low, *(point.low for point in bands)]), max([high, *(point.high for point in bands)])
        bottom, top = max(of_bands[0], low - more), min(of_bands[1], high + more)
        panel.set_ylim(bottom - more / 5, top + more / 5)
        if of_bands != (bottom, top):
            text = f"bands from {of_bands[0]:.2g} to {of_bands[1]:.2g}".replace("-", "−")
            panel.text(0.98, 0.97, text, transform=panel.transAxes, ha="right", va="top", fontsize="small")


def _mark_compute(panel: Axes, lines: Sequence[ContrastTrend], predicted_log_flops: float) -> None:
    """Name the compute of the rungs, and that of the paper at the right end, behind a break of the axis."""
    rungs = {rung: effect.log_flops for line in lines for rung, effect in zip(line.rungs, line.effects, strict=True)}
    low, high = min(rungs.values()), max(rungs.values())
    span = high - low or 1.0
    end = high + 0.26 * span
    names = [f"{rung}: {10**log_flops:.1e}" for rung, log_flops in rungs.items()]
    panel.set(xscale="log", xlim=(10 ** (low - 0.06 * span), 10 ** (end + 0.04 * span)))
    places = [10**log_flops for log_flops in (*rungs.values(), end)]
    panel.set_xticks(
        places, [*names, f"paper: {10**predicted_log_flops:.1e}"], rotation=25, ha="right", fontsize="small"
    )
    panel.set_xticks([], minor=True)
    panel.get_xticklabels()[-1].set_fontweight("bold")
    box = {"facecolor": "white", "edgecolor": "none", "pad": 0.5}
    at = 10 ** (high + 0.13 * span)
    panel.text(at, 0, "//", transform=panel.get_xaxis_transform(), ha="center", va="center", bbox=box, zorder=5)
    away = predicted_log_flops - high
    panel.set_xlabel(f"training FLOPs of a run (//: {away:.1f} powers of ten up to the paper's)")


def _draw_prediction(panel: Axes, line: ContrastTrend, look_of: int) -> None:
    if line.prediction:
        prediction = line.prediction
        look: dict[str, Any] = drawing.style(look_of, paper=not line.is_informative) | {"linestyle": "none"}
        reach = [[prediction.value - prediction.low], [prediction.high - prediction.value]]
        panel.errorbar([look_of], [prediction.value], yerr=reach, capsize=3, **look)


def _draw_paper(
    panel: Axes,
    lines: Sequence[ContrastTrend],
    measure: Measure,
    effects: Sequence[PaperEffect],
    looks: Mapping[str, int],
) -> None:
    """Draw the paper's effects in the look of their contrast; of rows that only the paper has, each under its name."""
    column = paper_column(effects, measure)
    panel.set_visible(column is not None)
    if column is None:
        return
    panel.set_title(f"{column} of the paper,\npoints", fontsize="medium")
    shown = {line.contrast.words for line in lines}
    for effect in effects:
        if effect.words in shown and column in effect.differences:
            look_of = looks[effect.words]
            panel.plot([look_of], [effect.differences[column]], **drawing.style(look_of, paper=True))
    others = [effect for effect in effects if effect.is_of_other_rows and column in effect.differences]
    if others:
        panel.plot(range(len(others)), [effect.differences[column] for effect in others], **_OTHER_ROWS)
        panel.set_xlim(-0.7, len(others) - 0.3)
        panel.set_xticks(
            range(len(others)), [effect.row for effect in others], rotation=25, ha="right", fontsize="small"
        )
        panel.set_xlabel(f"against {' and '.join(dict.fromkeys(effect.against for effect in others))}")


def paper_column(effects: Sequence[PaperEffect], measure: Measure) -> str | None:
    """The paper's column that a panel shows: that of the score, or, for a likelihood that it lacks, the average."""
    columns = {column for effect in effects for column in effect.differences}
    score = measure.label.removesuffix(" by probe").removesuffix(" as released")
    candidates = (score, _AVERAGE) if measure.unit.startswith("nats") else (score,)
    return next((column for column in candidates if column in columns), None)
