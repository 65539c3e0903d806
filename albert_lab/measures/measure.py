"""The kinds of held-out measure; the catalog has the measures."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

from albert_lab.config.data import InterSentenceConfig
from albert_lab.config.schema import RunConfig
from albert_lab.data.batches import fixed_pairs
from albert_lab.data.pairs import Pairs
from albert_lab.data.shards import Shards
from albert_lab.data.tokenizer import Tokenizer
from albert_lab.errors import ConfigError
from albert_lab.score import Documents, Score

if TYPE_CHECKING:  # plans and reports read the catalog without torch
    import torch

    from albert_lab.model.encoder import PretrainingModel


@dataclass(frozen=True)
class Measure:
    """A measure on the held-out documents of a corpus.

    Attributes:
        label: its heading in tables.
        in_curves: whether it is also taken along the way, for learning curves: by the model's own
            heads only.
    """

    unit: ClassVar[Literal["%", "points"]] = "%"

    name: str
    label: str
    in_curves: bool = False


@dataclass(frozen=True, kw_only=True)
class HeldOutPairs(Measure):
    """A measure with a fixed set of segment pairs.

    Attributes:
        objective: returns the objective whose pairs the set is made of.
        changed: makes its set from these pairs, the text and a seed.
    """

    objective: Callable[[], InterSentenceConfig]
    changed: Callable[[Pairs, Shards, int], Pairs] | None = None

    def pairs(self, shards: Shards, config: RunConfig, num_pairs: int) -> Pairs:
        """The first num_pairs pairs of a text, fewer if it has fewer; they do not depend on a run's
        seed or objective.

        Raises:
            ConfigError: pairs that cannot be made of this text (see pairs.make_pairs).
        """
        seed = config.evaluation.seed
        pairs = fixed_pairs(shards, self.objective(), config, num_pairs=num_pairs, seed=seed)
        return self.changed(pairs, shards, seed) if self.changed else pairs


class TokenMeasure(HeldOutPairs):
    """The share of masked tokens that the MLM head predicts, and its loss in nats per token.

    Its floor is the most frequent masked token.
    """


@dataclass(frozen=True, kw_only=True)
class PairMeasure(HeldOutPairs):
    """The share of pairs that are told from consecutive ones, and the loss in nats per pair.

    A model's own head answers, or a linear probe of its pooled output if it has none. Floors are
    the more frequent label and each segment by itself (see segments_floor.py).

    Attributes:
        negative: the kind of pair that a head tells from consecutive ones.
        probe: the name of the score of a linear probe, which every model has; None if its pairs
            have no probe.
        fitted_as: the measure whose training pairs fit its probe and its floor; None: its own
            training pairs.
    """

    negative: str
    probe: str | None = None
    fitted_as: str | None = None


@dataclass(frozen=True, kw_only=True)
class Baseline(Measure):
    """The share of the pairs of a pair measure that is told without what the model learnt.

    It is fitted on the pairs of training documents on which the measure's probe is fitted.

    Attributes:
        pairs_of: the name of the pair measure, which has a probe.
    """

    by: ClassVar[str]  # the method, as in its scores

    pairs_of: str


class RandomProbe(Baseline):
    """A linear probe of random weights of the model's shape."""

    by = "probe of random weights"


class WordOverlap(Baseline):
    """A logistic regression on the tokens that both segments have (see word_overlap.py)."""

    by = "word overlap"


@dataclass(frozen=True, kw_only=True)
class Difference(Measure):
    """A pair measure minus another one in points, pair by pair: both sets have as many pairs, in
    the same order.

    Attributes:
        of, minus: names of the two pair measures.
    """

    unit = "points"

    of: str
    minus: str


@dataclass(frozen=True, kw_only=True)
class OwnTextMeasure(Measure):
    """A measure of the model's MLM head on text of its own, which is the same for all runs, such as
    minimal pairs.

    Attributes:
        take: returns the score of a model in evaluation mode, and its counts and sums by document
            of that text.
    """

    take: "Callable[[PretrainingModel, Tokenizer, torch.device], tuple[Score, Documents]]"

    def taken(
        self, model: "PretrainingModel", tokenizer: Tokenizer, device: "torch.device"
    ) -> tuple[Score, Documents]:
        """What take() returns; ConfigError if that is no score with its documents, or if one has an
        invalid number.
        """
        parts = self.take(model, tokenizer, device)
        try:
            # Values that were changed after a score was made are not checked yet.
            score, documents = (part.model_dump() for part in parts)
            return Score.model_validate(score), Documents.model_validate(documents)
        except (TypeError, AttributeError, ValueError) as error:
            raise ConfigError(
                f"the measure {self.name} returns no valid Score and its Documents: {error}"
            ) from error
