"""The schema of a configuration: frozen pydantic models, strict and without defaults."""

import hashlib
import itertools
import json
import math
import re
from collections.abc import Sequence
from functools import cache
from typing import Annotated, Any, Literal, TypeVar

from omegaconf import OmegaConf
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from albert_lab import paths, registry
from albert_lab.distinct import Distinct
from albert_lab.naming import Name
from albert_lab.trackers import tracker as trackers

# Increment it with every change that affects scores: it is part of every run's name.
RESULTS_VERSION = 3

# The part of the state that a run inherits from the run it starts from. training: weights, optimizer, step, clock and
# curve, to continue the same schedule. weights: only the weights, with a new schedule.
Keep = Literal["training", "weights"]

MIN_VOCAB_SIZE = 32
# Far beyond any vocabulary in use; SentencePiece fails without an error near its limit of 2**31.
MAX_VOCAB_SIZE = 2**24
# SentencePiece refuses to sample fewer sentences, and a smaller share of characters.
MIN_TRAINING_SENTENCES = 101
MIN_CHARACTER_COVERAGE = 0.98
# More than any memory holds; the arithmetic of the sampling fails above 2**53.
MAX_TRAINING_SENTENCES = 10**12
MAX_LAYERS = 10_000
MAX_THREADS = 2**16
# More tokens than any sequence has; arrays are made of this size.
MAX_MASKED = 2**16
MIN_SEQUENCE_LENGTH = 8
PAPER_LEARNING_RATE = 0.00176
PAPER_BATCH_SIZE = 4096


class Section(BaseModel):
    """A part of a configuration: frozen, typed strictly, without defaults and without unknown keys."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False, protected_namespaces=())


AnySection = TypeVar("AnySection", bound=Section)
PositiveInt = Field(gt=0)
Share = Field(ge=0, le=1)
SEEDS = 2**32  # every random number generator accepts seeds below this
Seed = Field(ge=0, lt=SEEDS)


class ModelConfig(Section):
    """Shape of the encoder: layers L, hidden size H, attention heads, and intermediate_size of the FFN, all counts."""

    name: Name
    num_layers: int = Field(gt=0, le=MAX_LAYERS)
    hidden_size: int = PositiveInt
    num_attention_heads: int = PositiveInt
    intermediate_size: int = PositiveInt
    max_position_embeddings: int = PositiveInt
    hidden_act: str
    layer_norm_eps: float = Field(gt=0)
    initializer_range: float = Field(gt=0)

    @model_validator(mode="after")
    def _heads_divide(self) -> "ModelConfig":
        if self.hidden_size % self.num_attention_heads:
            small = [n for n in range(1, math.isqrt(self.hidden_size) + 1) if self.hidden_size % n == 0]
            divisors = {*small, *(self.hidden_size // n for n in small)}
            nearest = sorted(divisors, key=lambda n: abs(n - self.num_attention_heads))[:4]
            raise ValueError(
                f"num_attention_heads={self.num_attention_heads} does not divide hidden_size={self.hidden_size};"
                f" nearest that do: {', '.join(map(str, sorted(nearest)))}"
            )
        return self


class SharingConfig(Section):
    """How many distinct attention and FFN blocks the layers use; layer i of L uses block i * groups // L."""

    name: Name
    attention_groups: int = PositiveInt
    ffn_groups: int = PositiveInt


def _default(value: Any) -> Any:
    """A field that is left out of records where it has this value: runs from before it existed keep their names."""
    return Field(default=value, exclude_if=lambda given: given == value)


# What own code can add to, and a configuration names: the names of this package, the default of each part first.
BUILT_IN: dict[registry.Kind, tuple[str, ...]] = {
    "attention_block": ("standard",),
    "ffn_block": ("standard",),
    "position_encoding": ("learned",),
    "norm_placement": ("post",),
    "activation": ("gelu_new", "gelu", "relu"),
    "optimizer": ("lamb", "adamw", "muon"),
    "masking": ("n-gram",),
}
# The exchangeable parts of the encoder, which are keys of a configuration.
PARTS: tuple[registry.Kind, ...] = ("attention_block", "ffn_block", "position_encoding", "norm_placement")


class IncludedFile(Section):
    """A file of own code that a run was trained with: its name and its text."""

    file: str = Field(min_length=1)
    text: str


class PairLabel(Section):
    """One label of an inter-sentence objective: a kind of pair (a function in data/pairs.py) and its share."""

    kind: str
    share: float = Field(gt=0, le=1)


class InterSentenceConfig(Section):
    """The kinds of segment pairs that are made and classified. Without labels: consecutive pairs without a loss.

    cutting: whether documents are cut into chunks from both ends, so that lengths do not reveal the order, or only from
    the front, as in the released code.
    """

    name: Name
    labels: tuple[PairLabel, ...]
    single_sentence_chunks: Literal["drop", "other-document"]
    cutting: Literal["balanced", "released"]

    @model_validator(mode="after")
    def _shares_sum_to_one(self) -> "InterSentenceConfig":
        if self.labels and not math.isclose(sum(label.share for label in self.labels), 1.0, abs_tol=1e-6):
            raise ValueError(f"the shares of labels sum to {sum(label.share for label in self.labels):g}, not to 1")
        if len(self.labels) == 1:
            raise ValueError("a single label cannot be classified: give none, or two or more")
        if len({label.kind for label in self.labels}) < len(self.labels):
            raise ValueError("a kind of pair occurs twice among the labels")
        return self


# Empty, as from a shell variable that is not set, a path would be the current folder.
_Path = Annotated[str, Field(min_length=1)]


class HubDataset(Section):
    """A data set of the Hugging Face Hub, or a local folder in a format that `datasets` reads."""

    path: _Path
    name: str | None
    split: str


SourceDocuments = Literal["auto", "file", "blank-line"]
Documents = Literal["file", "blank-line", "paragraph"]


# ISO 639-1; a language without a two-letter code has a code of three letters. The sentence splitter accepts any text.
_LANGUAGES = (
    "aa ab ae af ak am an ar as av ay az ba be bg bi bm bn bo br bs ca ce ch co cr cs cu cv cy da de dv dz ee el en eo"
    " es et eu fa ff fi fj fo fr fy ga gd gl gn gu gv ha he hi ho hr ht hu hy hz ia id ie ig ii ik io is it iu ja jv ka"
    " kg ki kj kk kl km kn ko kr ks ku kv kw ky la lb lg li ln lo lt lu lv mg mh mi mk ml mn mr ms mt my na nb nd ne ng"
    " nl nn no nr nv ny oc oj om or os pa pi pl ps pt qu rm rn ro ru rw sa sc sd se sg si sk sl sm sn so sq sr ss st su"
    " sv sw ta te tg th ti tk tl tn to tr ts tt tw ty ug uk ur uz ve vi vo wa wo xh yi yo za zh zu"
)


def _check_language(code: str) -> str:
    language = re.fullmatch("([a-z]{2,3})(-[A-Za-z0-9]+)*", code)
    if not language or (len(language[1]) == 2 and language[1] not in _LANGUAGES.split()):
        raise ValueError(f"{code!r} is not a language code: two letters of ISO 639-1, such as en, or three of 639-3")
    return code


class CorpusConfig(Section):
    """The source of the text, its split into documents and sentences, and its cleaning.

    source_documents: units that are held out or trained on as a whole; documents: units of which segment pairs are
    made, the same or smaller. Records of .jsonl files, rows of data sets and sections of WikiExtractor are source
    documents.
    """

    name: Name
    source: Literal["package", "files", "hub"]
    path: _Path | None
    source_documents: SourceDocuments
    documents: Documents
    document_tokens: int | None = Field(gt=0)
    sentences: Literal["split", "line"]
    text_field: str
    language: Annotated[str, AfterValidator(_check_language)]
    lower_case: bool
    strip_accents: bool
    dev_share: float = Field(gt=0, lt=1)
    datasets: tuple[HubDataset, ...]


class AddedCorpusConfig(Section):
    """Training text in addition to the corpus, cleaned and split like it; source=none: no added text.

    The tokenizer and the held-out documents remain those of the corpus.
    """

    name: Name
    source: Literal["none", "package", "files", "hub"]
    path: _Path | None
    source_documents: SourceDocuments
    documents: Documents
    sentences: Literal["split", "line"]
    text_field: str
    datasets: tuple[HubDataset, ...]


class TokenizerConfig(Section):
    """A SentencePiece model: trained on the corpus, or an existing file; or an existing tokenizer.json.

    digit_commas: keep tokens such as "2006,", or split the comma off as the release does.
    """

    name: Name
    model_file: _Path | None
    digit_commas: Literal["keep", "split"]
    vocab_size: int = Field(ge=MIN_VOCAB_SIZE, le=MAX_VOCAB_SIZE)
    training_sentences: int | None = Field(ge=MIN_TRAINING_SENTENCES, le=MAX_TRAINING_SENTENCES)
    character_coverage: float | None = Field(ge=MIN_CHARACTER_COVERAGE, le=1)


class MaskingConfig(Section):
    """n-gram masking. max_predictions counts tokens per sequence; null: no cap.

    method chooses the tokens of training batches; held-out text always has n-gram masking, so that runs of different
    methods are scored on the same sets.
    """

    name: Name
    probability: float = Field(gt=0, lt=1)
    max_predictions: int | None = Field(gt=0, le=MAX_MASKED)
    max_ngram: int = Field(gt=0, le=MAX_MASKED)
    mask_share: float = Share
    random_share: float = Share
    method: str = _default("n-gram")

    @model_validator(mode="after")
    def _shares_fit(self) -> "MaskingConfig":
        if self.mask_share + self.random_share > 1 + 1e-9:
            raise ValueError(f"mask_share + random_share is {self.mask_share + self.random_share:g}, more than 1")
        return self

    def most_predictions(self, length: int) -> int:
        """Tokens that are predicted in a sequence of this length without padding, at most.

        Raises:
            ConfigError: the method is own code that is not included.
        """
        if self.method not in BUILT_IN["masking"]:
            registry.check_known("masking", self.method, BUILT_IN["masking"], "masking.method")
            return max(1, math.ceil(registry.own("masking")[self.method].share * length))
        wanted = max(1, round(self.probability * length))
        return min(wanted, self.max_predictions or wanted)


_Decay = Annotated[float, Field(ge=0, lt=1)]


def _two_numbers(value: Any) -> Any:
    if not isinstance(value, list | tuple) or len(value) != 2:
        raise ValueError(f"{value} is not a pair of numbers such as [0.9,0.999]")
    return tuple(value)


def _is_none(value: Any) -> bool:
    return value is None


# An option that not every optimizer has. Without it, a run keeps the name that it had before the option existed.
_Optional = Field(default=None, exclude_if=_is_none)


class OptimizerConfig(Section):
    """Optimizer and schedule. warmup is the share of the budget in which the rate rises.

    decay is the share at its end in which the rate falls to zero; without it, it falls from the warm-up on.

    Rates of groups of parameters, over the learning rate: muon_ratio, of the attention and FFN matrices;
    embedding_ratio, of the embeddings and other matrices outside of the blocks.
    """

    name: Name
    learning_rate: float | None = Field(gt=0)
    betas: Annotated[tuple[_Decay, _Decay], BeforeValidator(_two_numbers)]
    eps: float = Field(gt=0)
    weight_decay: float = Field(ge=0)
    warmup: float = Share
    max_grad_norm: float = Field(gt=0)
    muon_ratio: Annotated[float, Field(gt=0)] | None = _Optional
    momentum: _Decay | None = _Optional
    newton_schulz_steps: Annotated[int, Field(gt=0, lt=100)] | None = _Optional
    embedding_ratio: Annotated[float, Field(gt=0)] | None = _Optional
    decay: Annotated[float, Field(gt=0, le=1)] | None = _Optional

    @model_validator(mode="after")
    def _options_of_muon(self) -> "OptimizerConfig":
        for key in ("muon_ratio", "momentum", "newton_schulz_steps"):
            if self.name in BUILT_IN["optimizer"] and (getattr(self, key) is None) == (self.name == "muon"):
                verb = "needs" if self.name == "muon" else "does not have"
                raise ValueError(f"optimizer={self.name} {verb} {key}")
        return self


class BudgetConfig(Section):
    """The length of the training: value counts optimizer steps, seconds of the training clock, or non-padding tokens.

    The schedule is always that of the whole budget. stop_at is the share of the budget at which the run ends: below 1
    for a trunk, which other runs continue.
    """

    name: Name
    unit: Literal["steps", "seconds", "tokens"]
    value: float = Field(gt=0, le=1e15)
    stop_at: float = Field(gt=0, le=1)

    @model_validator(mode="after")
    def _whole_steps(self) -> "BudgetConfig":
        if self.unit != "seconds" and self.value != int(self.value):
            raise ValueError(f"value={self.value} is not a whole number of {self.unit}")
        return self


class LengthStage(Section):
    """A part of the budget in sequences of a fraction of max_sequence_length, and as many more of them in a batch."""

    share: float = Field(gt=0, le=1)
    fraction: float = Field(gt=0, lt=1)


class LengthScheduleConfig(Section):
    """The stages of shorter sequences at the start of a run; the rest of its budget has the full length."""

    name: Name
    stages: tuple[LengthStage, ...]

    @model_validator(mode="after")
    def _shares_fit(self) -> "LengthScheduleConfig":
        if (total := sum(stage.share for stage in self.stages)) > 1 + 1e-9:
            raise ValueError(f"the shares of the stages sum to {total:g}, more than 1")
        return self


class EvaluationConfig(Section):
    """Intrinsic evaluation on held-out documents; sizes count segment pairs."""

    num_pairs: int = PositiveInt
    num_probe_pairs: int = PositiveInt
    num_curve_points: int = Field(ge=0)
    num_curve_pairs: int = PositiveInt
    batch_size: int = PositiveInt
    seed: int = Seed


def _micro_batch_size(value: Any) -> Any:
    if value in (None, "auto") or (isinstance(value, int) and not isinstance(value, bool) and value > 0):
        return value
    raise ValueError(f"{value} is not a positive integer, auto or null")


MicroBatchSize = Annotated[int | Literal["auto"] | None, BeforeValidator(_micro_batch_size)]


def _tracker(name: str) -> str:
    if name not in trackers.names():
        raise ValueError(f"{name} is no tracker (allowed: {', '.join(trackers.names())})")
    return name


class MachineConfig(Section):
    """Technical settings of a run; they must not change its results beyond rounding."""

    device: Literal["auto", "cpu", "cuda"]
    precision: Literal["auto", "bf16", "fp16", "tf32", "fp32"]
    memory_check: bool
    compile: bool
    processes: int = PositiveInt
    threads: int | None = Field(gt=0, le=MAX_THREADS)
    workers: int | None = Field(gt=0, le=MAX_THREADS)
    micro_batch_size: MicroBatchSize
    checkpoint_seconds: float = Field(ge=0)
    log_every_steps: int = PositiveInt
    report_to: Annotated[tuple[Annotated[str, AfterValidator(_tracker)], ...], Distinct]

    @model_validator(mode="before")
    @classmethod
    def _complete(cls, content: Any) -> Any:
        """Add keys that are newer than a saved run; defaults are correct, since no machine key changes a score."""
        if not isinstance(content, dict):
            return content
        content = _machine_defaults() | content
        if content.pop("tensorboard", False):  # of runs from before there were other trackers
            content["report_to"] = ["tensorboard"]
        if isinstance(named := content["report_to"], str | list):
            content["report_to"] = (named,) if isinstance(named, str) else tuple(named)
        return content


@cache
def _machine_defaults() -> dict[str, Any]:
    content = OmegaConf.to_container(OmegaConf.load(paths.CONF / "config.yaml"))
    assert isinstance(content, dict)
    return dict(content["machine"])


def check_looks(looks: Sequence[int], seeds: int) -> None:
    """Check that looks are rising numbers of seeds, up to that of all seeds.

    Raises:
        ValueError: they are not.
    """
    if not looks or list(looks) != sorted(set(looks)) or looks[0] < 1 or looks[-1] != seeds:
        shown = ", ".join(map(str, looks))
        raise ValueError(f"looks=[{shown}]: rising numbers of seeds are needed, the last one {seeds}, that of `seeds`")


class ScaleBudget(Section):
    """The length of a run of the scale, in each unit of budget."""

    steps: float
    seconds: float
    tokens: float


class ScaleConfig(Section):
    """Name of the scale, its default seeds and its budgets. Other keys that the scale sets are in other sections.

    looks are the numbers of seeds at which a study is judged (studies/seed_plan.py), the last one all of them. roles
    maps, by key, a value of the paper to the value of this scale; experiment files refer to it by
    `${scale.roles.KEY.VALUE}`.
    """

    name: Name
    seeds: Annotated[tuple[Annotated[int, Seed], ...], Distinct, Field(min_length=1)]
    looks: tuple[int, ...]
    budget: ScaleBudget
    roles: dict[str, dict[str, str | int]]

    @model_validator(mode="before")
    @classmethod
    def _complete(cls, content: Any) -> Any:
        """Add the looks to a run that was saved before there were any: a single one, at all its seeds."""
        if not isinstance(content, dict) or not isinstance(content.get("seeds"), list | tuple):
            return content
        found = {"looks": (len(content["seeds"]),)} | content
        return {key: tuple(value) if isinstance(value, list) else value for key, value in found.items()}

    @model_validator(mode="after")
    def _looks_fit(self) -> "ScaleConfig":
        check_looks(self.looks, len(self.seeds))
        return self


def _check_stage(stage: LengthStage, length: int, batch_size: int) -> None:
    """Refuse a stage whose sequences are no whole number of tokens, or of which no whole number fills a batch."""
    tokens, sequences = stage.fraction * length, batch_size / stage.fraction
    if abs(tokens - round(tokens)) > 1e-6 or tokens < MIN_SEQUENCE_LENGTH:
        raise ValueError(
            f"length_schedule: fraction={stage.fraction:g} of max_sequence_length={length} is {tokens:g} tokens;"
            f" a whole number from {MIN_SEQUENCE_LENGTH} is needed, or length_schedule=constant"
        )
    if abs(sequences - round(sequences)) > 1e-6:
        raise ValueError(
            f"length_schedule: batch_size={batch_size} over fraction={stage.fraction:g} is {sequences:g} sequences;"
            " a whole number is needed"
        )


class RunConfig(Section):
    """One run, resolved."""

    scale: ScaleConfig
    model: ModelConfig
    sharing: SharingConfig
    inter_sentence: InterSentenceConfig
    corpus: CorpusConfig
    added_corpus: AddedCorpusConfig
    tokenizer: TokenizerConfig
    masking: MaskingConfig
    optimizer: OptimizerConfig
    budget: BudgetConfig
    length_schedule: LengthScheduleConfig = LengthScheduleConfig(name="constant", stages=())  # of runs without the key
    embedding_size: int = PositiveInt
    projection: Literal["auto", "always"]
    max_sequence_length: int = Field(ge=MIN_SEQUENCE_LENGTH)
    short_sequence_probability: float = Share
    batch_size: int = PositiveInt
    dropout: float = Field(ge=0, lt=1)
    attention_block: str = _default("standard")
    ffn_block: str = _default("standard")
    position_encoding: str = _default("learned")
    norm_placement: str = _default("post")
    seed: int = Seed
    include: tuple[IncludedFile, ...] = _default(())
    evaluation: EvaluationConfig
    machine: MachineConfig

    @model_validator(mode="after")
    def _parts_fit(self) -> "RunConfig":
        if self.max_sequence_length > self.model.max_position_embeddings:
            raise ValueError(
                f"max_sequence_length={self.max_sequence_length} is more than"
                f" model.max_position_embeddings={self.model.max_position_embeddings}"
            )
        for key in ("attention_groups", "ffn_groups"):
            if getattr(self.sharing, key) > self.model.num_layers:
                raise ValueError(
                    f"sharing.{key}={getattr(self.sharing, key)} is more than model.num_layers={self.model.num_layers}"
                )
        micro = self.machine.micro_batch_size
        if isinstance(micro, int) and self.batch_size % min(micro, self.batch_size):
            raise ValueError(f"machine.micro_batch_size={micro} does not divide batch_size={self.batch_size}")
        if self.batch_size % self.machine.processes:
            raise ValueError(f"machine.processes={self.machine.processes} does not divide batch_size={self.batch_size}")
        for stage in self.length_schedule.stages:
            _check_stage(stage, self.max_sequence_length, self.batch_size)
        return self

    @model_validator(mode="after")
    def _names_are_known(self) -> "RunConfig":
        for kind, key, name in self.named if not self.include else ():  # a record is read without its own code
            if kind in BUILT_IN:
                registry.check_known(kind, name, BUILT_IN[kind], key)
        return self

    @property
    def named(self) -> list[tuple[registry.Kind, str, str]]:
        """What own code can add to: its kind, the key, and the name that this configuration has there."""
        return [
            *((part, part, getattr(self, part)) for part in PARTS),
            ("activation", "model.hidden_act", self.model.hidden_act),
            ("optimizer", "optimizer", self.optimizer.name),
            ("masking", "masking.method", self.masking.method),
            *(("pair_kind", "inter_sentence.labels", label.kind) for label in self.inter_sentence.labels),
        ]

    def with_own_code(self) -> "RunConfig":
        """The configuration with the included files that it uses: those of its names, and those of all measures."""
        used = [registry.source_of(kind, name) for kind, _, name in self.named] + registry.measuring()
        files = {each.digest: IncludedFile(file=each.file, text=each.text) for each in used if each}
        return self.model_copy(update={"include": tuple(files[key] for key in sorted(files))}) if files else self

    @property
    def own_code(self) -> list[registry.Included]:
        """The files of own code that it was made with."""
        return [registry.Included(each.file, each.text) for each in self.include]

    def at_stage(self, number: int) -> "RunConfig":
        """The configuration of a stage of the length schedule: its length, and its number of sequences a batch.

        The last stage, number len(length_schedule.stages), has the full length.
        """
        if number == len(self.length_schedule.stages):
            return self
        length = round(self.length_schedule.stages[number].fraction * self.max_sequence_length)
        sequences = self.batch_size * self.max_sequence_length // length
        return self.model_copy(update={"max_sequence_length": length, "batch_size": sequences})

    @property
    def stage_starts(self) -> tuple[float, ...]:
        """The share of the budget at which each stage of the length schedule begins, the last one included."""
        starts = itertools.accumulate((stage.share for stage in self.length_schedule.stages), initial=0.0)
        return tuple(starts)

    @property
    def stage_shares(self) -> tuple[float, ...]:
        """The share of the budget of each stage of the length schedule, the last one included."""
        return tuple(end - start for start, end in itertools.pairwise((*self.stage_starts, 1.0)))

    @property
    def learning_rate(self) -> float:
        """Peak learning rate: the given one, or the paper's scaled by the square root of the batch size."""
        if self.optimizer.learning_rate is not None:
            return self.optimizer.learning_rate
        return PAPER_LEARNING_RATE * math.sqrt(self.batch_size / PAPER_BATCH_SIZE)

    def identity(self) -> dict[str, Any]:
        """The content that is hashed into a run's name: everything that determines its scores.

        It excludes the scale's name (the keys it sets are included), paths (replaced by fingerprints of the files), and
        machine.*, unless the budget is in seconds, since the machine then determines the number of steps. The size that
        machine.micro_batch_size=auto finds is never included: auto counts as null.
        """
        content = self.model_dump(mode="json")
        del content["scale"]
        if not self.length_schedule.stages:  # as in names from before there were stages
            del content["length_schedule"]
        if self.budget.unit != "seconds":
            del content["machine"]
        else:
            if self.machine.processes == 1:  # as in names from before several processes were possible
                del content["machine"]["processes"]
            if self.machine.micro_batch_size == "auto":
                content["machine"]["micro_batch_size"] = None
            del content["machine"]["report_to"]
            content["machine"]["tensorboard"] = False  # as in names from before there were other trackers
        if self.include:
            content["include"] = [each.digest for each in self.own_code]
        del content["corpus"]["path"], content["added_corpus"]["path"], content["tokenizer"]["model_file"]
        return content


def digest(content: Any) -> str:
    """Short stable hash (12 hex digits) of any JSON value."""
    text = json.dumps(content, sort_keys=True, ensure_ascii=False)
    return hashlib.blake2b(text.encode(), digest_size=6).hexdigest()
