"""The look at which a study stands, in words."""

from albert_lab.analysis.analysis import Analysis
from albert_lab.report.templates import call


def sentence(analysis: Analysis) -> str:
    """The look at which a study stands, with the level of its verdicts; empty for a plan of a single look."""
    plan = analysis.study.plan
    number = plan.look_of(analysis.study.seeds) if plan else None
    level = next((verdict.level for verdict in analysis.verdicts if verdict.effect is not None), 0.0)
    return call("look.md.j2", "look", plan, number, level)
