"""The agreement with the paper in words."""

from albert_lab.analysis.agreement import Agreement
from albert_lab.analysis.analysis import Analysis
from albert_lab.report.templates import call, fill
from albert_lab.score import wilson


def of_report(analysis: Analysis) -> str:
    """The agreement of a report in words, or why it has no pair; empty for a study that is not of the paper."""
    if analysis.experiment.is_of_paper and not analysis.agreement.pairs:
        return call("no_agreement.md.j2", "none_left", analysis.left_out, sum(analysis.left_out.values()))
    return f"Agreement with the paper:\n\n{text}" if (text := as_text(analysis.agreement)) else ""


def as_text(agreement: Agreement) -> str:
    """An agreement in words, with 95 % Wilson intervals that assume independent pairs; empty without pairs."""
    return fill("agreement.md.j2", **_values(agreement)).strip() if agreement.pairs else ""


def _values(agreement: Agreement) -> dict[str, object]:
    return {
        "score": _share(agreement.agreeing, agreement.pairs),
        "decided": agreement.decided and _share(agreement.decided_agreeing, agreement.decided),
        "likelihood": agreement.likely and _share(agreement.likely_agreeing, agreement.likely),
        "parameters": agreement.sized and _share(agreement.sized_agreeing, agreement.sized),
        "rerun": f"{100 * agreement.rerun / agreement.pairs:.0f}",
    }


def _share(part: int, n: int) -> str:
    low, high = wilson(part, n)
    return f"{part} of {n} ({100 * part / n:.0f} % [{low:.0f}, {high:.0f}])"
