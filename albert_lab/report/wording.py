"""The words of a study: its claims, their verdicts and reasons, its answer. Reports, screens and
pictures have them.
"""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from albert_lab.analysis.analysis import Analysis
from albert_lab.analysis.contrasts import contrast
from albert_lab.analysis.findings import ALPHA
from albert_lab.analysis.sentences import Sentence
from albert_lab.analysis.verdict import Effect, Form, Outcome, Reason, Verdict
from albert_lab.analysis.verdicts import baselines_of, is_of_one_set
from albert_lab.messages import counted
from albert_lab.report import numbers
from albert_lab.studies.claims import BaseClaim, Kind, axis_name, number_in
from albert_lab.studies.experiment import OF_CLAIM

WORDS = {
    Outcome.SUPPORTED: "yes",
    Outcome.NOT_SUPPORTED: "NO",
    Outcome.UNDECIDED: "undecided",
    Outcome.CANNOT_TELL: "cannot tell",
    Outcome.NOT_RUN: "not run",
}
KINDS = {Kind.LOSS: "by loss", Kind.TASKS: "by tasks", Kind.NUMBER: "by number"}
OTHER_SETS = "with one text, vocabulary, length and masking they could be compared"
SETTINGS = {"model.num_layers": "layers"}
REASONS = {
    Reason.NO_ROW: "this table has not all rows of the claim: it lacks {all}",
    Reason.SEVERAL_ROWS: "each of its rows is several here: give one value of {all}",
    Reason.NOT_MEASURED: "{all}: not measured in all of its rows",
    Reason.TOO_SMALL: "the sentence is about {1} {0}, and these models have {2}",
    Reason.SAME_RUNS: "at this scale its rows are the same runs",
    Reason.OTHER_SETS: f"its rows were scored on different held-out sets: {OTHER_SETS}",
    Reason.NOT_COUNTED: "{heading} does not count: rows are not clearly above random weights and "
    "words alone",
    Reason.NOT_LEARNT: "not learnt: no row is clearly above a constant answer",
    Reason.OWN_TASK_NOT_LEARNT: "not learnt: its row is as a constant answer in its own task, {0}",
    Reason.SEGMENTS_AS_HIGH: "it needs no relation of two segments: a classifier that sees one has "
    "{0} %",
    Reason.BASELINE_NOT_MEASURED: "its baselines were not measured: it may need nothing that the "
    "model learnt",
    Reason.BASELINE_AS_HIGH: "it needs nothing that the model learnt: {0} is as high",
    Reason.NO_RATIO: "a ratio needs numbers above 0",
    Reason.TOO_FEW_RUNS: "one seed has no spread",
}
# Those whose details are metrics.
OF_METRICS = (Reason.NOT_MEASURED, Reason.OWN_TASK_NOT_LEARNT, Reason.BASELINE_AS_HIGH)
TOO_WIDE = "too wide to tell"
NOT_ASKED = "no report asks it"
ABOVE_0 = "above 0"
NO_RUN = "No run is finished."


@dataclass(frozen=True)
class Words:
    """What a study says of a claim by one kind of evidence.

    Attributes:
        word: that of its outcome, in WORDS.
        evidence: what was tested, the number with its interval, and the paper's; or why nothing can
            be told.
        brief: the same for a cell of a table, without the names of rows and scores.
        number: the effect with its interval; empty without one.
        asked: where the number has to be if the claim is true; empty without one.
        reason: why nothing is decided; empty if something is, or if the numbers say it.
    """

    word: str
    evidence: str
    brief: str
    number: str = ""
    asked: str = ""
    reason: str = ""


def words(analysis: Analysis, verdict: Verdict) -> Words:
    measured = verdict.effect
    return Words(
        WORDS[verdict.outcome],
        _evidence(analysis, verdict),
        _brief(analysis, verdict),
        number=numbers.effect(measured) if measured else "",
        asked=asked(measured) if measured else "",
        reason=_reason(analysis, verdict),
    )


def words_of(sentence: Sentence) -> dict[Kind, Words]:
    """What reports say of a claim, by each kind of evidence that it is asked of."""
    said = {}
    for kind in sentence.kinds:
        found = sentence.by.get(kind)
        unasked = Words(WORDS[Outcome.NOT_RUN], NOT_ASKED, NOT_ASKED)
        said[kind] = words(found.analysis, found.verdict) if found else unasked
    return said


def short(claim: BaseClaim) -> str:
    """A claim for a line of a terminal or of a picture; that of a user's own may be long."""
    return claim.short or claim.quote


def _evidence(analysis: Analysis, verdict: Verdict) -> str:
    """What was measured and what the claim asks: SOP of nsp: 49.8 % [48.4, 51.1] (asked: 45 to 55);
    paper 52.0.
    """
    measured = verdict.effect
    parts = list[str]()
    if measured:
        shown, *others = _measured(verdict)
        parts.append(f"{analysis.heading(measured.metric)}{_compared(measured)}: {shown}")
        parts += others
        probed = [row for _, row in measured.rows if (measured.metric, row) in analysis.by_probe]
        if probed:
            parts.append(f"{' and '.join(probed)} by a linear probe, for want of a head")
    if verdict.outcome is Outcome.UNDECIDED and verdict.seeds_needed:
        parts.append(f"{verdict.seeds_needed} seeds a row would decide an effect as large")
    if beside := verdict.beside:
        parts.append(f"{analysis.heading(beside.metric)} {numbers.effect(beside)}")
    if verdict.claim.at_scale:
        parts.append(f"by arithmetic at scale={verdict.claim.at_scale}")
    # That reason has the number of single segments itself.
    reason_has_it = verdict.reason is Reason.SEGMENTS_AS_HIGH
    if measured and measured.form is Form.LEVEL and not reason_has_it:
        parts += _baselines(analysis, measured)
    if reason := _reason(analysis, verdict):
        parts.append(reason)
    return "; ".join(parts)


def _brief(analysis: Analysis, verdict: Verdict) -> str:
    """What was measured and asked, the paper's number, and why nothing is decided."""
    measured = verdict.effect
    parts = _measured(verdict)
    if verdict.outcome is Outcome.UNDECIDED and measured and measured.is_too_wide:
        parts.append(TOO_WIDE)
    if reason := _reason(analysis, verdict):
        parts.append(reason)
    return "; ".join(parts)


def _measured(verdict: Verdict) -> list[str]:
    """A number with its interval and what is asked; then the paper's, if there is one, and p of
    what is undecided. Empty if nothing was measured.
    """
    measured = verdict.effect
    if measured is None:
        return []
    bounds = asked(measured)
    # Of a difference the order of its rows says what is asked.
    shown = f" (asked: {bounds})" if bounds != ABOVE_0 else ""
    parts = [f"{numbers.effect(measured)}{shown}"]
    if not math.isnan(measured.paper):
        parts.append(f"paper {numbers.amount(measured, measured.paper)}")
    # NaN of one seed.
    if verdict.outcome is Outcome.UNDECIDED and verdict.p >= ALPHA:
        parts.append(f"p {verdict.p:.2g}")
    return parts


def _compared(measured: Effect) -> str:
    """The rows that a number is of, to stand after the name of its score: " of row a", ", a − b",
    ", a / b", or ", slope a row from a to b".
    """
    names = [name for _, name in measured.rows]
    if measured.form is Form.LEVEL:
        return f" of row {names[0]}"
    if measured.form is Form.SLOPE:
        rising = [name for _, name in sorted(measured.rows)]
        return f", slope a row from {rising[0]} to {rising[-1]}"
    if measured.form is Form.RATIO:
        return f", {' / '.join(names)}"
    terms = [f"{'−' if weight < 0 else '+'} {name}" for weight, name in measured.rows]
    return ", " + " ".join(terms).removeprefix("+ ")


def asked(measured: Effect) -> str:
    """Where a number has to be if the claim is true: above 0, 45 to 55, ±0.05 or below 2."""
    low = measured.low_bound
    high = measured.high_bound
    if math.isinf(high):
        return f"above {low:g}"
    if low == -high:
        return f"±{high:g}"
    return f"{low:g} to {high:g}" if low > 0 else f"below {high:g}"


def _baselines(analysis: Analysis, measured: Effect) -> list[str]:
    """What is told of the pairs of a score without what the model learnt, as far as it was
    measured.
    """
    lines = []
    row = measured.rows[0][1]
    for measure in baselines_of(measured.metric):
        if (measure.name, row) in analysis.summary.index:
            mean = analysis.summary.loc[(measure.name, row), "mean"]
            lines.append(f"{measure.label} {mean:.1f}")
    if not math.isnan(measured.segments):
        lines.append(f"single segments tell {measured.segments:.1f}")
    return lines


def _reason(analysis: Analysis, verdict: Verdict) -> str:
    """Why a claim is not decided; empty if it is, or if it is tested and the numbers say all."""
    if verdict.reason is None:
        return ""
    details = [SETTINGS.get(detail, detail) for detail in verdict.details]
    if verdict.reason in OF_METRICS:
        details = [analysis.heading(metric) for metric in verdict.details]
    heading = analysis.heading(verdict.metric)
    # Names of rows have commas.
    together = ("; " if verdict.reason is Reason.NO_ROW else ", ").join(details)
    text = REASONS[verdict.reason].format(*details, all=together, heading=heading)
    if verdict.reason is Reason.NOT_MEASURED and verdict.metric.endswith("tokens_per_second"):
        text += "; speeds are those of runs that had the machine to themselves (--jobs 1)"
    return text


def sizes(analysis: Analysis) -> str:
    """Which sizes of the paper the numbers in the names of rows stand for; empty if all are its
    own.
    """
    pairs: dict[str, str] = {}
    for point in analysis.study.points if analysis.experiment.is_of_paper else ():
        for axis, label in point.labels.items():
            here = point.values[axis]
            if here != label and None not in (number_in(here), number_in(label)):
                pairs[f"{axis_name(axis)}={here}"] = label
    stands = ", ".join(f"{here} for {label}" for here, label in pairs.items())
    return stands.replace(" for ", " stands for the paper's ", 1)


def answer(analysis: Analysis) -> str:
    """The answer to a study's question in one sentence, made of its verdicts; without claims its
    best and worst row.
    """
    if not analysis.study.runs:
        return NO_RUN
    if not analysis.verdicts:
        # A sweep is fine-tuned only on tasks that its command names: they are its question.
        columns = analysis.experiment.columns
        named = {*analysis.frame.tasks.values()} - {*columns}
        asked = named or {*columns}
        metric = next((metric for metric in analysis.metrics if metric in asked), None)
        if metric is None:
            return NO_RUN
        # A task that is not above random weights and words alone tells nothing.
        if metric in named and not analysis.summary.loc[metric]["counts"].all():
            return f"{REASONS[Reason.NOT_COUNTED].format(heading=analysis.heading(metric))}."
        return f"{extremes(analysis, metric)}."
    decided = _decided_verdicts(analysis)
    supported = Outcome.SUPPORTED
    hold = [name for name, verdict in decided.items() if verdict.outcome is supported]
    fail = [name for name in decided if name not in hold]
    for known in analysis.experiment.answers:
        if {*known.holds} <= {*hold} and {*known.fails} <= {*fail}:
            return OF_CLAIM.sub(lambda place: _size(decided[place[1]]), known.say)
    if not decided:
        return "Nothing is decided at this scale."
    sentence = hold[0] if hold else f"not so: {fail[0]}"
    return f"{sentence[0].upper()}{sentence[1:]}."


def title(analysis: Analysis) -> str:
    """What stands above a picture: the answer, and which sizes of the paper its own stand for."""
    stands = sizes(analysis)
    return f"{answer(analysis)} {stands}." if stands else answer(analysis)


def _size(verdict: Verdict) -> str:
    """The number that decides a claim, of a difference without its sign; of a loss with its
    accuracy, which pictures draw: 0.072 nats (1.0 points).
    """
    sizes = []
    for measured in filter(None, (verdict.effect, verdict.beside)):
        amount = numbers.amount(measured, measured.value).lstrip("+-")
        sizes.append(f"{amount} {numbers.unit_of(measured)}".strip())
    if not sizes:
        return numbers.MISSING
    beside = f" ({sizes[1]})" if len(sizes) > 1 else ""
    return f"{sizes[0]}{beside}"


def _decided_verdicts(analysis: Analysis) -> dict[str, Verdict]:
    """The verdict on each decided claim by its short form: that by the first kind of evidence that
    decides it.
    """
    decided = dict[str, Verdict]()
    for verdict in analysis.verdicts:
        if verdict.outcome in (Outcome.SUPPORTED, Outcome.NOT_SUPPORTED):
            decided.setdefault(short(verdict.claim), verdict)
    return decided


def claims_counted(analysis: Analysis) -> str:
    """How many of a study's claims hold, by each kind of evidence; empty without claims."""
    said = [said for _, said in claims_of(analysis)]
    return _in_numbers(said, " of the paper" * analysis.experiment.is_of_paper) if said else ""


def of_sentences(lines: Sequence[Sentence], whose: str = " of the paper") -> str:
    """How many claims hold over all reports, by each kind of evidence; see claims_counted()."""
    return _in_numbers([words_of(line) for line in lines], whose)


def _in_numbers(claims: Sequence[dict[Kind, Words]], whose: str) -> str:
    """Of 3 claims of the paper: by loss 3 yes; by tasks 1 yes, 2 cannot tell."""
    found = Counter[tuple[Kind, str]]()
    for said in claims:
        found.update((kind, line.word) for kind, line in said.items())
    parts = []
    for kind, name in KINDS.items():
        counts = [f"{found[kind, word]} {word}" for word in WORDS.values() if found[kind, word]]
        if counts:
            parts.append(f"{name} {', '.join(counts)}")
    return f"Of {counted(len(claims), 'claim')}{whose}: {'; '.join(parts)}."


def extremes(analysis: Analysis, metric: str) -> str:
    """The rows with the highest and the lowest mean of a metric, and whether that is more than
    noise.
    """
    means = analysis.summary.loc[metric, "mean"]
    of_rows = means.reindex(analysis.rows).dropna()
    means = of_rows if len(of_rows) > 1 else means  # random weights beside one row
    unit = analysis.unit(metric)
    heading = analysis.heading(metric)
    if not is_of_one_set(metric, analysis.study.runs):
        return f"{heading} was taken on different held-out sets: {OTHER_SETS}"
    best = str(means.idxmax())
    worst = str(means.idxmin())
    low, high = (f"{numbers.value(means[row], unit)} {unit}".strip() for row in (worst, best))
    if low == high:
        return f"{heading}{' is the same in all rows' * (len(means) > 1)}: {low}"
    # They were chosen of all pairs of rows (Bonferroni); of one seed nothing is known.
    p = contrast(analysis.frame, metric, {best: 1.0, worst: -1.0}).p * len(means) * (len(means) - 1)
    if p < ALPHA:
        return f"{heading} is highest for {best} ({high}) and lowest for {worst} ({low})"
    between = f"{heading} is between {low} ({worst}) and {high} ({best})"
    if math.isnan(p):
        return f"{between}: one seed has no spread, so nothing is decided"
    return f"{between}: within the noise of these seeds"


def claims_of(analysis: Analysis) -> list[tuple[BaseClaim, dict[Kind, Words]]]:
    """The claims of a study, each with what it says of it by each kind of evidence, of which each
    claim has one or two; what cannot be told is said in the words. Empty for a study without
    claims.
    """
    found = []
    for claim in analysis.experiment.claims:
        verdicts = [verdict for verdict in analysis.verdicts if verdict.claim is claim]
        said = {verdict.kind: words(analysis, verdict) for verdict in verdicts}
        found.append((claim, said))
    return found
