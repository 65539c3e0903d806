"""The look at which a study stands, in words."""

from albert_lab.analysis.analysis import Analysis

TOO_SMALL = "Seeds that are added after a look at the verdicts make p-values too small."
WITHOUT_PLAN = f"Its seeds were chosen **without a plan**. {TOO_SMALL}"


def sentence(analysis: Analysis) -> str:
    """The look at which a study stands, with the level of its verdicts; empty for a plan of a single look."""
    plan = analysis.study.plan
    if plan is None:
        return WITHOUT_PLAN
    parts = []
    if len(plan.looks) > 1:
        planned = ", ".join(map(str, plan.looks))
        parts.append(f"Look {plan.look_of(analysis.study.seeds)} of {len(plan.looks)} (planned at {planned} seeds)")
        levels = sorted({verdict.level for verdict in analysis.verdicts if verdict.effect is not None})
        parts[0] += f": a verdict needs a corrected p below {' or '.join(map(_level, levels))}." if levels else "."
    if plan.unplanned:
        numbers = " and ".join(map(str, plan.unplanned))
        parts.append(f"**Without a plan**: its runs were judged before, at {numbers} seeds. {TOO_SMALL}")
    return " ".join(parts)


def _level(level: float) -> str:
    return f"{level:.2g}"
