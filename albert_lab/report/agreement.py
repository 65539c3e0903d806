"""The agreement with the paper in words."""

from albert_lab.analysis.agreement import LEAST_DIFFERENCE, PAPERS_SD, Agreement
from albert_lab.report.templates import fill
from albert_lab.score import wilson


def as_text(found: Agreement) -> str:
    """An agreement in words, with 95 % Wilson intervals that assume independent pairs; empty without pairs."""
    if not found.pairs:
        return ""
    return fill(
        "agreement.md.j2",
        least=f"{LEAST_DIFFERENCE:g}",
        score=_share(found.agreeing, found.pairs),
        decided=found.decided and _share(found.decided_agreeing, found.decided),
        likelihood=found.likely and _share(found.likely_agreeing, found.likely),
        parameters=found.sized and _share(found.sized_agreeing, found.sized),
        rerun=f"{100 * found.rerun / found.pairs:.0f}",
        papers_sd=f"{PAPERS_SD:.2f}",
    ).strip()


def _share(part: int, n: int) -> str:
    low, high = wilson(part, n)
    return f"{part} of {n} ({100 * part / n:.0f} % [{low:.0f}, {high:.0f}])"
