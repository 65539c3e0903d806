"""The agreement with the paper in one line."""

from albert_lab.analysis.agreement import Agreement

TO_BEAT = (
    "small models predict which of two recipes is better at large scale in about 80 %"
    " (Magnusson et al. 2025, DataDecide, arXiv 2504.11393)"
)


def as_text(found: Agreement) -> str:
    """An agreement in one line, with 95 % Wilson intervals that assume independent pairs; empty without pairs."""
    if not found.pairs:
        return ""
    text = f"Order of rows: of {_comparisons(found.pairs)} of two rows by one score,"
    text += f" {_share(found.agreeing, found.pairs)} have the paper's order"
    if found.decided:
        decided = _share(found.decided_agreeing, found.decided)
        text += f"; of the {found.decided} whose difference is decided here, {decided}"
    else:
        text += "; none of the differences is decided here"
    return f"{text}. For comparison: {TO_BEAT}. The comparisons share rows; the intervals take them as independent."


def _comparisons(n: int) -> str:
    return f"{n} comparison" if n == 1 else f"{n} comparisons"


def _share(part: int, n: int) -> str:
    from statsmodels.stats.proportion import proportion_confint

    low, high = proportion_confint(part, n, method="wilson")
    return f"{part} ({100 * part / n:.0f} % [{100 * low:.0f}, {100 * high:.0f}])"
