"""The regime of a run: dimensionless numbers beside the paper's own, which say what a small re-run can show."""

from dataclasses import dataclass

from albert_lab.config.schema import RunConfig
from albert_lab.cost.parameters import count_parameters, masked_per_sequence
from albert_lab.runs.results import RunRecord

FAR = 10.0  # a ratio this many times off the paper's is noted
# Section 4.1: 125,000 steps of 4,096 sequences of 512 tokens, over 16 GB of text at about 4.4 bytes a token.
PAPER_TOKENS = 125_000 * 4096 * 512
PAPER_PASSES = 72.0


@dataclass(frozen=True)
class Quantity:
    """One dimensionless number of a run.

    Attributes:
        name: what it is.
        value: here; None where it is not known yet.
        paper: the smallest and largest of the paper's ablations; None where the paper does not say.
        concerns: the tables whose outcome depends on it.
    """

    name: str
    value: float | None
    paper: tuple[float, float] | None
    concerns: str

    @property
    def times_off(self) -> float | None:
        """How many times it lies beyond the paper's range; 1 within it, None where either is not known."""
        if self.value is None or self.paper is None or self.value <= 0:
            return None
        low, high = self.paper
        return max(1.0, low / self.value, self.value / high)

    @property
    def is_far(self) -> bool:
        """Whether it is more than FAR times off."""
        return self.times_off is not None and self.times_off > FAR


def of_config(config: RunConfig) -> list[Quantity]:
    """What a configuration alone tells; the tokens of a budget in steps are counted at full length."""
    unit, budget = config.budget.unit, config.budget.value
    tokens = {"steps": budget * config.batch_size * config.max_sequence_length, "tokens": budget}.get(unit)
    return _quantities(config, tokens, None, None, None)


def of_record(record: RunRecord) -> list[Quantity]:
    """The numbers of a finished run: its tokens without padding, its text as it was cut."""
    data = record.data
    tokens = record.training.tokens
    return _quantities(record.config, tokens, data.epochs, data.document_start_share, data.median_document_sequences)


def _quantities(
    config: RunConfig,
    tokens: float | None,
    passes: float | None,
    document_start_share: float | None,
    median_document: float | None,
) -> list[Quantity]:
    parameters, hidden_size = count_parameters(config).total, config.model.hidden_size
    return [
        Quantity(
            "tokens per parameter",
            None if tokens is None else tokens / parameters,
            (PAPER_TOKENS / 108e6, PAPER_TOKENS / 12e6),
            "Tables 3 and 4: where training and not capacity limits a model, sharing and a small E cost little",
        ),
        Quantity("passes over the text", passes, (PAPER_PASSES, PAPER_PASSES), "Tables 7 and 8: overfitting"),
        Quantity("share of chunks that begin a document", document_start_share, None, "Table 5: what tells the order"),
        Quantity("median document in sequences", median_document, None, "Table 5: what tells the order"),
        Quantity("E / H", config.embedding_size / hidden_size, (64 / 768, 1.0), "Table 3"),
        Quantity("head size", hidden_size / config.model.num_attention_heads, (64.0, 64.0), "all tables"),
        Quantity(
            "masked tokens per step",
            float(masked_per_sequence(config) * config.batch_size),
            (20.0 * 4096, 77.0 * 4096),
            "all tables: the noise of a step",
        ),
        Quantity("warm-up as a share of the budget", config.optimizer.warmup, (0.025, 0.025), "all tables"),
    ]


def notes(quantities: list[Quantity]) -> list[str]:
    """A sentence for each number that is far off the paper's, with the tables that it concerns."""
    return [
        f"{each.name}: {each.times_off:,.0f} times {'below' if each.value < each.paper[0] else 'above'} the paper's"
        f" ({each.concerns})"
        for each in quantities
        if each.is_far and each.value is not None and each.paper is not None
    ]
