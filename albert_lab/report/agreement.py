"""The agreement with the paper in words."""

from albert_lab.analysis.agreement import LEAST_DIFFERENCE, PAPERS_SD, Agreement


def as_text(found: Agreement) -> str:
    """An agreement in words, with 95 % Wilson intervals that assume independent pairs; empty without pairs."""
    if not found.pairs:
        return ""
    parts = [f"by score {_share(found.agreeing, found.pairs)}"]
    parts += [f"where it is decided here {_share(found.decided_agreeing, found.decided)}"] if found.decided else []
    parts += [f"by likelihood {_share(found.likely_agreeing, found.likely)}"] if found.likely else []
    beside = [f"“more parameters win” {_share(found.sized_agreeing, found.sized)}"] if found.sized else []
    beside.append(
        f"a re-run of the paper {100 * found.rerun / found.pairs:.0f} %, if each of its scores has a standard deviation"
        f" of {PAPERS_SD:.2f} points, as MNLI in its Tables 3 and 4"
    )
    return (
        "Order of rows, one factor at a time, without rows at the floor and differences of the paper below"
        f" {LEAST_DIFFERENCE:g} point; pairs in the paper's order: {'; '.join(parts)}. For comparison:"
        f" {'; '.join(beside)}. Pairs share rows; the intervals take them as independent."
    )


def _share(part: int, n: int) -> str:
    from statsmodels.stats.proportion import proportion_confint

    low, high = proportion_confint(part, n, method="wilson")
    return f"{part} of {n} ({100 * part / n:.0f} % [{100 * low:.0f}, {100 * high:.0f}])"
