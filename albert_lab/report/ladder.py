"""The report of a ladder as Markdown and as a page: trends in words and numbers, validation, effects and cost."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from statistics import mean, stdev

from albert_lab.analysis.ladder import ContrastTrend, LadderAnalysis, Measure, analyse
from albert_lab.analysis.trend import DecisionAccuracy, Effect, Interval, Share
from albert_lab.figures import ladder as figures
from albert_lab.measures.catalog import labels, units
from albert_lab.report.markdown import BY_PROBE, MISSING, PROBE_NOTE, as_table, decimal, escape_tags
from albert_lab.report.page import html
from albert_lab.report.templates import call, fill
from albert_lab.runs.results import RunRecord
from albert_lab.storage import write_atomically
from albert_lab.studies import ladder_results
from albert_lab.studies.ladder_results import LadderPoint, LadderResults
from albert_lab.units import duration

REPORT, PAGE = "report.md", "report.html"
NARROW = " †"


def write(folder: Path, analysis: LadderAnalysis) -> Path:
    """Write the results of a ladder and their report into a folder; return the path of the Markdown."""
    ladder_results.write(folder, analysis.results)
    return _write_pages(folder, analysis)


def rebuild(folder: Path) -> Path:
    """Rebuild report.md, report.html and figures from the folder's records; return the path of report.md.

    Raises:
        ConfigError: a file of the report is missing or cannot be read.
    """
    return _write_pages(folder, analyse(ladder_results.read(folder)))


def _write_pages(folder: Path, analysis: LadderAnalysis) -> Path:
    text = render(analysis, figures.draw(folder, analysis))
    write_atomically(folder / PAGE, html.page(text, folder))
    write_atomically(folder / REPORT, escape_tags(text))
    return folder / REPORT


def render(analysis: LadderAnalysis, drawn: list[str]) -> str:
    """The report as Markdown."""
    return fill(
        "ladder.md.j2",
        file=analysis.results.file,
        results=analysis.results,
        sentences=list(sentences(analysis)),
        early=_early(analysis),
        has_narrow=any(line.trend.is_narrow for line in analysis.trends if line.trend),
        trends=[_trends(analysis, measure) for measure in analysis.measures],
        rungs_with_runs=sum(bool(_finished(analysis.results, rung)) for rung in analysis.results.rungs),
        paper=_paper(analysis),
        flops=f"{10**analysis.predicted_log_flops:.1e}",
        paper_lacks=_paper_lacks(analysis),
        validation=_validation(analysis),
        not_predicted=_not_predicted(analysis),
        accuracies=_accuracies(analysis),
        in_all=_in_all(analysis),
        effects=[_effects(analysis, measure) for measure in analysis.measures],
        scores=[_scores(analysis, measure) for measure in analysis.measures if measure.key in labels()],
        probe_note=PROBE_NOTE if any(line.is_by_probe for line in analysis.scores) else "",
        figures={name: figures.CAPTIONS[name] for name in drawn},
        cost=_cost(analysis.results),
        missing=analysis.results.missing,
    )


def as_text(analysis: LadderAnalysis) -> str:
    """The end of the command: a sentence for each contrast and measure, and the decision accuracy."""
    accuracies = [
        call("trend.md.j2", "accuracy", measure, *_shares(accuracy))
        for measure, accuracy in analysis.accuracies.items()
    ]
    return "\n".join(line for line in [*sentences(analysis), _early(analysis), *accuracies, _in_all(analysis)] if line)


def as_json(analysis: LadderAnalysis) -> str:
    content = {
        "predicted_log10_flops": analysis.predicted_log_flops,
        "contrasts": [asdict(line) | {"direction": line.direction} for line in analysis.trends],
        "decision_accuracy": {measure.key: asdict(line) for measure, line in analysis.accuracies.items()},
        "decision_accuracy_in_all": asdict(analysis.accuracy) if analysis.accuracy else None,
        "paper": [asdict(effect) for effect in analysis.paper],
    }
    return json.dumps(content, indent=2)


def sentences(analysis: LadderAnalysis) -> Iterator[str]:
    """A sentence for each contrast and measure: the way in which the effect changes, and the prediction.

    A difference whose sign is shown is told as the lead of the better row, so that it grows by a positive number.
    """
    log_flops = analysis.predicted_log_flops
    for line in analysis.trends:
        subject, slope, predicted = f"the difference {line.contrast.words}", "", ""
        if line.trend and line.prediction:
            is_lead = line.direction in {"grows", "shrinks"} or (not line.direction and line.trend.level.sign != 0)
            is_reversed = is_lead and line.trend.level.value < 0
            subject = _lead(line, is_reversed=is_reversed) if is_lead else subject
            change, place = (-part if is_reversed else part for part in (line.trend.slope, line.prediction))
            is_less = line.direction == "shrinks" or (line.direction and not is_lead and change.value < 0)
            slope = _amount(-change if is_less else change, line.measure)
            predicted = _amount(place, line.measure)
        powers = log_flops - line.effects[-1].log_flops
        yield call("trend.md.j2", "sentence", line, subject, slope, predicted, powers)


def _lead(line: ContrastTrend, *, is_reversed: bool) -> str:
    contrast = line.contrast
    rows = [contrast.first[contrast.axis], contrast.second[contrast.axis]]
    better, other = reversed(rows) if is_reversed else rows
    return f"the lead of {better} over {other}{contrast.at}"


def _early(analysis: LadderAnalysis) -> str:
    """The rungs that are left out of trends since they are below their first look; empty if there are none."""
    rungs = [rung for rung in analysis.results.rungs if any(rung in line.early for line in analysis.trends)]
    return call("trend.md.j2", "early", rungs, analysis.results.file.looks[0]) if rungs else ""


def _trends(analysis: LadderAnalysis, measure: Measure) -> str:
    header = (
        f"{measure.label}, {measure.unit}",
        "rungs",
        "slope per tenfold compute",
        "p (Holm)",
        "level",
        "in the middle",
        "tau",
        "rungs of one sign",
        "verdict",
        "at the paper's compute",
    )
    body = []
    for line in analysis.of(measure):
        if trend := line.trend:
            assert line.prediction is not None
            assert line.p is not None
            beyond = ", beyond the scale" if line.leaves_the_scale else ""
            informative = beyond if line.prediction.sign else ", uninformative"
            narrow = NARROW if trend.is_narrow else ""
            body.append(
                [
                    line.contrast.words,
                    str(len(line.effects)),
                    _shown(trend.slope, measure, more=1) + narrow,
                    f"{line.p:.3f}",
                    MISSING if line.alpha is None else f"{line.alpha:.3f}",
                    _shown(trend.level, measure),
                    _number(trend.tau, measure, more=1),
                    f"{100 * trend.share_of_one_sign:.0f} %",
                    line.direction or ("undecided" if line.alpha is not None else "before its first look"),
                    _shown(line.prediction, measure) + informative,
                ]
            )
        else:
            body.append([line.contrast.words, str(len(line.effects)), *[MISSING] * 8])
    return as_table(header, body)


def _validation(analysis: LadderAnalysis) -> str:
    body = [
        [
            line.measure.label,
            line.contrast.words,
            line.rungs[-1],
            _shown(line.validation.predicted, line.measure),
            _effect(line.validation.measured, line.measure),
            "yes" if line.validation.holds else "no",
        ]
        for line in analysis.trends
        if line.validation
    ]
    header = ("measure", "contrast", "top rung", "predicted from the lower rungs", "measured", "within the interval")
    return as_table(header, body) if body else ""


def _not_predicted(analysis: LadderAnalysis) -> str:
    """The contrasts whose top rung is not predicted, with the measures if it is in others; empty if there are none."""
    named: list[str] = []
    for words in dict.fromkeys(line.contrast.words for line in analysis.trends):
        lines = [line for line in analysis.trends if line.contrast.words == words]
        lacking = [line.measure.label for line in lines if not line.validation]
        if lacking:
            named.append(words if len(lacking) == len(lines) else f"{words} ({', '.join(lacking)})")
    is_hidden = any(len({bool(line.validation) for line in analysis.of(measure)}) > 1 for measure in analysis.measures)
    return call("trend.md.j2", "not_predicted", named, is_hidden) if named else ""


def _accuracies(analysis: LadderAnalysis) -> str:
    body = [[measure.label, *_shares(accuracy)] for measure, accuracy in analysis.accuracies.items()]
    if analysis.accuracy and len(body) > 1:
        body.append(["all", *_shares(analysis.accuracy)])
    return as_table(("decision accuracy", "all lower rungs", "the lowest rung alone"), body) if body else ""


def _in_all(analysis: LadderAnalysis) -> str:
    """The decision accuracy over all contrasts and measures in plain words; empty if nothing can be predicted."""
    return call("trend.md.j2", "in_all", analysis.accuracy) if analysis.accuracy else ""


def _shares(accuracy: DecisionAccuracy) -> list[str]:
    return [_share(accuracy.ladder), _share(accuracy.lowest)]


def _paper(analysis: LadderAnalysis) -> str:
    """The paper's own effects in its columns with plain numbers; empty if it has none for this ladder."""
    paper = analysis.results.file.experiment.paper
    if not paper or not analysis.paper:
        return ""
    columns = [name for name in paper.columns.values() if any(name in effect.differences for effect in analysis.paper)]
    body = [
        [
            effect.words,
            *(f"{effect.differences[name]:+.1f}" if name in effect.differences else MISSING for name in columns),
        ]
        for effect in analysis.paper
    ]
    return as_table((f"{paper.table}, points", *columns), body)


def _paper_lacks(analysis: LadderAnalysis) -> list[str]:
    """The contrasts in whose place the paper's table has rows of its own."""
    lacking = dict.fromkeys(line.contrast.words for line in analysis.trends if not line.paper)
    return list(lacking) if any(effect.is_of_other_rows for effect in analysis.paper) else []


def _effects(analysis: LadderAnalysis, measure: Measure) -> str:
    rungs = analysis.results.rungs
    body = []
    for line in analysis.of(measure):
        cells = {**dict(zip(line.rungs, line.effects, strict=True)), **line.early}
        shown = [
            _effect(cells[rung], measure) + f" (n = {cells[rung].n})" if rung in cells else MISSING for rung in rungs
        ]
        body.append([line.contrast.words, *shown])
    return as_table((f"{measure.label}, {measure.unit}", *rungs), body)


def _effect(effect: Effect, measure: Measure) -> str:
    """An effect with its interval over seeds; alone if no rung has two of them."""
    return _shown(effect.interval, measure) if effect.df else _number(effect.value, measure)


def _scores(analysis: LadderAnalysis, measure: Measure) -> str:
    """The scores of each row at each rung, mean and standard deviation over seeds, and their floors."""
    rungs = analysis.results.rungs
    rows = [line for line in analysis.scores if line.measure == measure and line.scores]
    varied = [axis for axis in rows[0].row if len({line.row[axis] for line in rows}) > 1]
    body = [
        [
            ", ".join(line.row[axis] for axis in varied) + (BY_PROBE if line.is_by_probe else ""),
            *(_mean(line.scores.get(rung, ())) for rung in rungs),
        ]
        for line in rows
    ]
    for name in dict.fromkeys(name for line in rows for name in line.floors):
        floors = {rung: value for line in rows for rung, value in line.floors.get(name, {}).items()}
        body.append([name, *(decimal(floors[rung]) if rung in floors else MISSING for rung in rungs)])
    unit = units().get(measure.key, "%")
    return as_table((f"{measure.label} {unit}", *rungs), body)


def _mean(values: Sequence[float]) -> str:
    if not values:
        return MISSING
    return decimal(mean(values)) + (f" ± {decimal(stdev(values))}" if len(values) > 1 else "")


def _cost(results: LadderResults) -> str:
    body = []
    for rung in results.rungs:
        points = [point for point in results.file.points if point.rung == rung]
        finished = _finished(results, rung)
        records = [record for _, record in finished]
        priced = [
            (point.estimated_seconds, record.training.training_seconds)
            for point, record in finished
            if point.estimated_seconds is not None
            and record.provenance.device == point.estimated_on
            # A run that continues a training counts its seconds, too, and was priced without.
            and not (record.start_from and record.start_from.keep == "training")
        ]
        flops = [record.train_flops_per_token * record.training.tokens for record in records]
        tokens = [record.training.tokens for record in records]
        passes = [record.data.passes for record in records]
        seeds = {point.seed for point, _ in finished}
        body.append(
            [
                rung,
                f"{len(records)} of {len(points)}",
                str(len(seeds)),
                f"{min(tokens):,}" if tokens else MISSING,
                f"{mean(passes):.1f}" if passes else MISSING,
                f"{min(flops):.1e} to {max(flops):.1e}" if flops else MISSING,
                ", ".join(sorted({record.provenance.device_names for record in records})) or MISSING,
                duration(sum(record.training.training_seconds for record in records)) if records else MISSING,
                duration(sum(estimate for estimate, _ in priced)) if priced else MISSING,
                duration(sum(taken for _, taken in priced)) if priced else MISSING,
            ]
        )
    header = ("rung", "runs", "seeds", "tokens", "passes", "FLOPs", "device", "training time")
    return as_table((*header, "estimated before", "those runs took"), body)


def _finished(results: LadderResults, rung: str) -> list[tuple[LadderPoint, RunRecord]]:
    """The finished runs of a rung, each with what was asked for."""
    points = [point for point in results.file.points if point.rung == rung]
    return [(point, results.runs[point.run].record) for point in points if point.run in results.runs]


def _share(share: Share) -> str:
    interval = share.interval
    percent = f"{100 * interval.value:.0f} % [{100 * interval.low:.0f}, {100 * interval.high:.0f}]"
    return f"{share.right} of {share.of} ({percent})"


def _shown(interval: Interval, measure: Measure, more: int = 0) -> str:
    value, low, high = (_number(end, measure, more) for end in (interval.value, interval.low, interval.high))
    return f"{value} [{low}, {high}]"


def _amount(interval: Interval, measure: Measure) -> str:
    value, _, rest = _shown(interval, measure).partition(" ")
    return f"{value} {measure.unit} {rest}"


def _number(value: float, measure: Measure, more: int = 0) -> str:
    """A number to as many decimals as its unit needs; without the sign of a zero."""
    decimals = (1 if measure.unit == "points" else 3) + more
    return f"{round(value, decimals) + 0.0:.{decimals}f}"
