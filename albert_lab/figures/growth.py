"""The growth of the time of a step with each size, and of a study with its runs, next to growth in proportion."""

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from albert_lab.cost.growth import Growth
from albert_lab.figures import drawing
from albert_lab.studies.growth import StudyGrowth

COLUMNS = 3


def draw(growth: Growth) -> Figure | None:
    """A panel for each size, with both axes logarithmic; None if nothing was measured."""
    sizes = [size for size in growth.sizes if any(point.seconds_per_step for point in growth.of(size))]
    if not sizes:
        return None
    columns = min(COLUMNS, len(sizes))
    figure, rows = drawing.sheet(-(-len(sizes) // columns), columns)
    panels = [panel for row in rows for panel in row]
    for size, panel in zip(sizes, panels, strict=False):
        points = [(point, point.seconds_per_step) for point in growth.of(size) if point.seconds_per_step]
        values = [point.value for point, _ in points]
        times = [1000 * time.median for _, time in points]
        errors = [
            [1000 * (time.median - time.low) for _, time in points],
            [1000 * (time.high - time.median) for _, time in points],
        ]
        panel.errorbar(values, times, yerr=errors, capsize=3, label="measured (quartiles)", **drawing.style(0))
        base, first = points[0][0], times[0]
        expected = [first * point.flops_ratio / base.flops_ratio for point, _ in points]
        panel.plot(values, expected, label="in proportion to FLOPs", **drawing.style(1, paper=True))
        _make_logarithmic(panel, values)
        panel.set_xlabel(size)
        panel.set_ylabel("ms a step")
    for panel in panels[len(sizes) :]:
        panel.set_visible(False)
    drawing.legend_below(figure, panels[:1])
    return figure


def draw_studies(growth: StudyGrowth) -> Figure:
    """The time of a study against its number of runs, a line for each number of simultaneous runs."""
    figure, [[panel]] = drawing.sheet(1, 1)
    for place, jobs in enumerate(growth.jobs):
        times = growth.of(jobs)
        runs, seconds = [each.runs for each in times], [each.seconds for each in times]
        words = "one run at a time" if jobs == 1 else f"at most {jobs} runs at a time"
        panel.plot(runs, seconds, label=words, **drawing.style(place))
    first = growth.times[0]
    runs = [each.runs for each in growth.of(first.jobs)]
    expected = [first.seconds * each / first.runs for each in runs]
    panel.plot(runs, expected, label="in proportion to the runs", **drawing.style(len(growth.jobs), paper=True))
    _make_logarithmic(panel, runs)
    panel.set_xlabel("runs")
    panel.set_ylabel("seconds of the study")
    drawing.legend_below(figure, [panel])
    return figure


def _make_logarithmic(panel: Axes, ticks: Sequence[float]) -> None:
    panel.set_xscale("log")
    panel.set_yscale("log")
    panel.yaxis.set_major_formatter("{x:g}")
    panel.yaxis.set_minor_formatter("{x:g}")
    drawing.plain_ticks(panel, ticks)
