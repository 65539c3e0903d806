"""What is said of a claim: an outcome, the reason if nothing is decided, and the measured effect.

Values alone; words are report/wording.py's.
"""

import math
from dataclasses import dataclass
from enum import Enum

from albert_lab.studies.claims import BaseClaim, Kind


class Outcome(Enum):
    """What a table says of a claim."""

    SUPPORTED = "supported"
    NOT_SUPPORTED = "not supported"
    UNDECIDED = "undecided"
    CANNOT_TELL = "cannot tell"
    NOT_RUN = "not run"


class Reason(Enum):
    """Why a claim is not decided; what Verdict.details then has."""

    NO_ROW = "no row in this table"  # the rows that it lacks
    SEVERAL_ROWS = "several rows for one"  # the axes that the command added
    NOT_MEASURED = "score not measured"  # the metrics that would do
    TOO_SMALL = "smaller than the sentence is about"  # a setting, what is needed, what it is here
    SAME_RUNS = "same runs"
    OTHER_SETS = "other held-out sets"
    NOT_COUNTED = "task does not count"
    NOT_LEARNT = "no row above the floor"
    OWN_TASK_NOT_LEARNT = "row at the floor of its own task"  # the metric that it was trained for
    SEGMENTS_AS_HIGH = "single segments as high"  # what they tell
    BASELINE_NOT_MEASURED = "baseline of a probe not measured"
    BASELINE_AS_HIGH = "baseline of a probe as high"  # the baseline
    NO_RATIO = "numbers not above 0"
    TOO_FEW_RUNS = "too few runs for a spread"


class Form(Enum):
    """What an effect is: the level of a row, a difference (of sums), a ratio, or a slope along an
    axis.
    """

    LEVEL = "level"
    DIFFERENCE = "difference"
    RATIO = "ratio"
    SLOPE = "slope"


@dataclass(frozen=True)
class Effect:
    """A comparison as measured.

    Attributes:
        metric, unit, form: what it is of.
        rows: the weights and names of its rows.
        low_bound, high_bound: where it has to be if the claim is true; infinite without a bound.
        value, low, high: its size with its 95 % interval over seeds and documents (NaN without
            one): a difference in points for scores, a factor for a ratio, a level for a claim about
            one row.
        paper: the same of the paper's numbers; NaN without them.
        segments: what single segments score, of a level; NaN without this floor.
    """

    metric: str
    unit: str
    form: Form
    rows: tuple[tuple[float, str], ...]
    low_bound: float
    high_bound: float
    value: float
    low: float
    high: float
    paper: float
    segments: float = math.nan

    @property
    def is_too_wide(self) -> bool:
        """Whether its interval is wider than half of the bounds, or than the distance of the
        paper's effect from the only one, so that such runs could not have told it; false if the
        paper has no number.
        """
        if math.isfinite(self.high_bound - self.low_bound):
            size = (self.high_bound - self.low_bound) / 2
        else:
            size = abs(self.paper - max(self.low_bound, 0.0))
        return self.high - self.low > size


@dataclass(frozen=True)
class Verdict:
    """What a study says of a claim by one kind of evidence.

    Attributes:
        metric: what decided it, or what would have.
        effect: of the comparison that decides, which is the weakest one that the claim needs, or
            the one that contradicts it most; None if it cannot be computed.
        beside: the same of the accuracy that belongs to a loss; None without.
        p: two-sided, of the claim or against it, after Holm's correction over the claims of the
            study that are decided by this kind of evidence; NaN if it was not tested.
        seeds_needed: how many seeds a row would decide it, if the true effect is the measured one
            (80 %, before Holm's correction); None if it was not tested, or no number of seeds
            would.
        reason, details: why it is not decided; None and empty if it is.
    """

    claim: BaseClaim
    kind: Kind
    metric: str
    outcome: Outcome
    effect: Effect | None = None
    beside: Effect | None = None
    p: float = math.nan
    seeds_needed: int | None = None
    reason: Reason | None = None
    details: tuple[str, ...] = ()
