"""What a study says in words: a line a claim, the answer in one sentence, the best and the worst row of a metric."""

from collections import Counter
from dataclasses import dataclass
from typing import Any

from albert_lab.analysis import numbers
from albert_lab.analysis.analysis import Analysis
from albert_lab.analysis.contrasts import contrast
from albert_lab.analysis.sentences import MIXED, outcome
from albert_lab.analysis.verdicts import (
    ALPHA,
    CANNOT_TELL,
    NOT_SUPPORTED,
    OTHER_SETS,
    SUPPORTED,
    UNDECIDED,
    WORDS,
    is_of_one_set,
)

PLAIN = {SUPPORTED: "yes", NOT_SUPPORTED: "NO"}


@dataclass(frozen=True)
class ClaimLine:
    """A sentence of the paper, or a claim of the user's, as reports and terminals show it.

    Attributes:
        word: yes, NO, undecided or cannot tell.
        quote: the sentence.
        evidence: what was tested, the number with its interval, and the paper's; or why nothing can be told.
        warning: a floor that the score is not above; empty without one.
        short: the number with its interval and the paper's, for a line of a terminal; empty without a number.
    """

    word: str
    quote: str
    evidence: str
    warning: str = ""
    short: str = ""


def claim_lines(analysis: Analysis) -> list[ClaimLine]:
    """A line a claim; those of one sentence that were not run share one."""
    lines: list[ClaimLine] = []
    not_run: dict[str, list[Any]] = {}
    table: Any = analysis.verdicts
    for _, line in table.iterrows():
        if line["why"].startswith("not run"):
            not_run.setdefault(line["quote"], []).append(line)
        else:
            said = evidence(analysis, line), _warning(analysis, line), _short(analysis, line)
            lines.append(ClaimLine(word(line["verdict"]), line["quote"], *said))
    for quote, same in not_run.items():
        headings = dict.fromkeys(analysis.heading(line["metric"]) for line in same)
        reason = same[0]["why"] if len(same) == 1 else "not run"
        lines.append(ClaimLine(word(CANNOT_TELL), quote, f"{', '.join(headings)}: {reason}"))
    return lines


def word(verdict: str) -> str:
    return PLAIN.get(verdict, verdict)


def evidence(analysis: Analysis, line: Any) -> str:
    """What was tested and what was measured: SOP, nsp within 45 to 55 %: 49.8 % [48.4, 51.1]; paper 52.0."""
    unit = analysis.unit(line["metric"])
    if not line["compared"]:
        return f"{analysis.heading(line['metric'])}, {line['check']}: {line['why']}"
    first, *others = line["compared"].split(" − ")
    is_named = line["kind"] != "difference" or (len(others) == 1 and line["check"].startswith(first))
    compared = "" if is_named else f"{line['compared']} = "
    text = f"{analysis.heading(line['metric'])}, {line['check']}: {compared}{numbers.effect(line, unit)}"
    if line["paper"] == line["paper"]:
        text += f"; paper {numbers.number(line, line['paper'], unit)}"
    if line["why"]:
        text += f"; {line['why']}"
    elif not line["can_tell"]:
        text += "; the interval is too wide to tell"
    return text


def _short(analysis: Analysis, line: Any) -> str:
    unit = analysis.unit(line["metric"])
    paper = "" if line["paper"] != line["paper"] else f"; paper {numbers.number(line, line['paper'], unit)}"
    return f"{analysis.heading(line['metric'])} {numbers.effect(line, unit)}{paper}" if line["compared"] else ""


def _warning(analysis: Analysis, line: Any) -> str:
    """Whether single segments give as much as the one row of a claim that it is above a level; empty if they do not."""
    row = line["compared"]
    if (
        line["verdict"] != SUPPORTED
        or " above " not in line["check"]
        or (line["metric"], row) not in analysis.summary.index
    ):
        return ""
    scored: Any = analysis.summary.loc[(line["metric"], row)]
    if not scored["segments"] >= line["low"]:
        return ""
    return f"single segments by themselves give {scored['segments']:.1f} %: this score needs no relation of the two"


def answer(analysis: Analysis) -> str:
    """The answer of a study in one sentence: how many of its sentences hold; without claims its best and worst row."""
    table: Any = analysis.verdicts
    if table.empty:
        metric = next((name for name in analysis.metrics if name in analysis.experiment.columns), None)
        return "No run is finished." if metric is None else f"{extremes(analysis, metric)}."
    found = Counter(outcome(set(same)) for _, same in table.groupby("quote", sort=False)["verdict"])
    is_of_paper = analysis.experiment.is_of_paper
    whose = f"{'sentence' if is_of_paper else 'claim'}{'s' * (found.total() > 1)}{' of the paper' * is_of_paper}"
    said = [f"{found[name]} {_HOLD[name][found[name] > 1]}" for name in (*WORDS, MIXED) if found[name]]
    return f"Of {found.total()} {whose}, {', '.join(said)}."


_HOLD = {
    SUPPORTED: ("holds here", "hold here"),
    NOT_SUPPORTED: ("does not (NO)", "do not (NO)"),
    UNDECIDED: ("is undecided", "are undecided"),
    CANNOT_TELL: ("this study cannot tell", "this study cannot tell"),
    MIXED: ("holds by one score and not by another", "hold by one score and not by another"),
}


def extremes(analysis: Analysis, metric: str) -> str:
    """The rows with the highest and the lowest mean of a metric, and whether that is more than noise."""
    means: Any = analysis.summary.loc[metric, "mean"]
    means = own if len(own := means.reindex(analysis.rows).dropna()) > 1 else means  # random weights beside one row
    unit, heading = analysis.unit(metric), analysis.heading(metric)
    if not is_of_one_set(analysis.study, metric, {run.name for run in analysis.study.runs}):
        return f"{heading} was taken on different held-out sets: {OTHER_SETS}"
    best, worst = str(means.idxmax()), str(means.idxmin())
    shown = {row: f"{numbers.value(means[row], unit)} {unit}".strip() for row in (best, worst)}
    if best == worst:
        return f"{heading}{' is the same in all rows' * (len(means) > 1)}: {shown[best]}"
    # They were chosen of all pairs of rows (Bonferroni); of one seed nothing is known, and NaN is not noise.
    is_noise = contrast(analysis.frame, metric, {best: 1.0, worst: -1.0}).p * len(means) * (len(means) - 1) >= ALPHA
    noise = "; the difference is within the noise of these seeds" if is_noise else ""
    return f"{heading} is highest for {best} ({shown[best]}) and lowest for {worst} ({shown[worst]}){noise}"
