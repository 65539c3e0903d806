"""The regime of a run: dimensionless numbers next to the paper's, which show what a small re-run can answer."""

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from albert_lab.config.schema import RunConfig
from albert_lab.cost.counts import count_parameters, masked_per_sequence
from albert_lab.cost.listing import Listing
from albert_lab.errors import ConfigError
from albert_lab.runs.results import RunRecord

UNKNOWN = "—"
ALL_TABLES = "all tables"
FAR = 10.0  # a ratio this many times off the paper's is noted
# Section 4.1: 125,000 steps of 4,096 sequences of 512 tokens, over 16 GB of text at about 4.4 bytes a token.
PAPER_TOKENS = 125_000 * 4096 * 512
PAPER_PASSES = 72.0
# With words of 2,000 kinds, E = 3 and E = 6 left masked language modelling on its plateau in every seed; 12 did not.
LEARNT_EMBEDDING_SIZE = 12
WORDS = 2_000


Range = tuple[float, float]  # the smallest and the largest


@dataclass(frozen=True)
class Quantity:
    """One dimensionless number of one run or of several.

    Attributes:
        name: its name.
        here: its range over the runs; None if not known yet.
        paper: its range over the paper's ablations; None if the paper does not give it.
        tables: the tables of the paper whose outcome depends on it.
        reason: its effect on these tables.
    """

    name: str
    here: Range | None
    paper: Range | None
    tables: str
    reason: str

    @property
    def times_below(self) -> float:
        """The factor by which it is below the paper's range; at most 1 if it is not, or if either is unknown."""
        return self.paper[0] / self.here[0] if self.here and self.paper and self.here[0] > 0 else 1.0

    @property
    def times_above(self) -> float:
        """The factor by which it is above the paper's range, likewise."""
        return self.here[1] / self.paper[1] if self.here and self.paper else 1.0

    @property
    def times_off(self) -> float:
        """The factor by which it is outside the paper's range; 1 within it, or if either is unknown."""
        return max(1.0, self.times_below, self.times_above)

    @property
    def is_far(self) -> bool:
        """Whether it is outside the paper's range by more than FAR times."""
        return self.times_off > FAR


def of_config(config: RunConfig, text_tokens: float | None = None) -> list[Quantity]:
    """Quantities that follow from a configuration; the tokens of a budget in steps are counted at full length."""
    unit, budget = config.budget.unit, config.budget.value * config.budget.stop_at
    tokens = {"steps": budget * config.batch_size * config.max_sequence_length, "tokens": budget}.get(unit)
    parameters = count_parameters(config).total
    passes = tokens / text_tokens if tokens and text_tokens else None
    return _quantities(config, parameters, tokens, passes, None, None)


def too_small(configs: Iterable[RunConfig]) -> list[str]:
    """A warning on embedding sizes at which no model was seen to learn; what E must hold does not shrink with H."""
    sizes = {config.embedding_size for config in configs if config.tokenizer.vocab_size >= WORDS}
    small = sorted(size for size in sizes if size < LEARNT_EMBEDDING_SIZE)
    if not small:
        return []
    return [
        f"warning: embedding_size={','.join(map(str, small))}: below {LEARNT_EMBEDDING_SIZE}, no model was seen to"
        " learn masked language modelling"
    ]


def of_record(record: RunRecord) -> list[Quantity]:
    """The numbers of a finished run: its tokens without padding, its text as it was cut into chunks."""
    data = record.data
    tokens = record.training.tokens
    return _quantities(
        record.config,
        record.parameters["total"],
        tokens,
        data.passes,
        data.document_start_share,
        data.median_document_sequences,
    )


def _quantities(
    config: RunConfig,
    parameters: int,
    tokens: float | None,
    passes: float | None,
    document_start_share: float | None,
    median_document: float | None,
) -> list[Quantity]:
    hidden_size = config.model.hidden_size
    return [
        Quantity(
            "tokens per parameter",
            _of_one(None if tokens is None else tokens / parameters),
            (PAPER_TOKENS / 108e6, PAPER_TOKENS / 10e6),
            "Tables 3 and 4",
            "where training and not capacity limits a model, sharing and a small E cost little",
        ),
        Quantity(
            "passes over the text", _of_one(passes), (PAPER_PASSES, PAPER_PASSES), "Tables 7 and 8", "overfitting"
        ),
        Quantity(
            "share of chunks that begin a document",
            _of_one(document_start_share),
            None,
            "Table 5",
            "the cues to the order of segments",
        ),
        Quantity(
            "median document in sequences",
            _of_one(median_document),
            None,
            "Table 5",
            "the cues to the order of segments",
        ),
        Quantity(
            "E / H",
            _of_one(config.embedding_size / hidden_size),
            (64 / 768, 1.0),
            "Table 3",
            "what a smaller E can save",
        ),
        Quantity(
            "head size",
            _of_one(hidden_size / config.model.num_attention_heads),
            (64.0, 64.0),
            ALL_TABLES,
            "attention",
        ),
        Quantity(
            "masked tokens per step",
            _of_one(_masked_per_step(config)),
            (20.0 * 4096, 77.0 * 4096),
            ALL_TABLES,
            "the noise of a step",
        ),
        Quantity(
            "warm-up as a share of the budget",
            _of_one(config.optimizer.warmup),
            (0.025, 0.025),
            ALL_TABLES,
            "the schedule",
        ),
        *_of_schedule(config),
    ]


def _masked_per_step(config: RunConfig) -> float | None:
    """None for the record of a run whose own masking is not included."""
    try:
        return float(masked_per_sequence(config) * config.batch_size)
    except ConfigError:
        return None


def _of_schedule(config: RunConfig) -> list[Quantity]:
    if not config.length_schedule.stages:
        return []
    at_full_length = _of_one(config.stage_shares[-1])
    return [Quantity("share of the budget at full length", at_full_length, (1.0, 1.0), ALL_TABLES, "long contexts")]


def _of_one(value: float | None) -> Range | None:
    return None if value is None else (value, value)


def together(runs: Sequence[list[Quantity]]) -> list[Quantity]:
    """The quantities of several runs as one list: each from its smallest to its largest."""
    by_name: dict[str, list[Quantity]] = {}
    for quantity in itertools.chain(*runs):
        by_name.setdefault(quantity.name, []).append(quantity)
    quantities = []
    for of_runs in by_name.values():
        known = [quantity.here for quantity in of_runs if quantity.here]
        here = (min(low for low, _ in known), max(high for _, high in known)) if known else None
        quantities.append(replace(of_runs[0], here=here))
    return quantities


def cells(quantities: Sequence[Quantity]) -> list[dict[str, str]]:
    return [
        {
            "regime": quantity.name,
            "here": _printed(quantity.here),
            "paper": _printed(quantity.paper),
            "ratio": _number(quantity.times_off) if quantity.here and quantity.paper else UNKNOWN,
            "matters for": quantity.tables,
        }
        for quantity in quantities
    ]


def listing(quantities: Sequence[Quantity]) -> Listing:
    return Listing(cells(quantities), notes(quantities))


def notes(quantities: Sequence[Quantity]) -> list[str]:
    return [
        f"{quantity.name}: {quantity.times_off:,.0f} times"
        f" {'below' if quantity.times_below > quantity.times_above else 'above'} the paper's;"
        f" matters for {quantity.tables}: {quantity.reason}"
        for quantity in quantities
        if quantity.is_far
    ]


def _printed(range_: Range | None) -> str:
    return UNKNOWN if range_ is None else " to ".join(dict.fromkeys(map(_number, range_)))


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
