"""The one door for configuration: Hydra composes, frozen pydantic models come out."""

import difflib
import hashlib
import itertools
import json
import math
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Annotated, Any, Literal, TypeVar

from hydra import compose, initialize_config_dir
from hydra.core.global_hydra import GlobalHydra
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override, Sweep
from hydra.errors import HydraException
from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from albert_lab import paths
from albert_lab.errors import ConfigError

# Raise it with every change that moves numbers: it is part of every run's name.
RESULTS_VERSION = 1

# What a run keeps of the one it starts from. training: weights, optimizer, step, clock and curve, to go on under the
# same schedule. weights: nothing else, for a schedule of its own.
Keep = Literal["training", "weights"]

PAPER_LEARNING_RATE = 0.00176
PAPER_BATCH_SIZE = 4096


class Section(BaseModel):
    """A part of a configuration: frozen, typed strictly, without defaults and without unknown keys."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False, protected_namespaces=())


AnySection = TypeVar("AnySection", bound=Section)
PositiveInt = Field(gt=0)
Share = Field(ge=0, le=1)


class ModelConfig(Section):
    """Shape of the encoder. Sizes are in units (hidden_size H, intermediate_size of the FFN, heads, layers L)."""

    name: str
    num_layers: int = PositiveInt
    hidden_size: int = PositiveInt
    num_attention_heads: int = PositiveInt
    intermediate_size: int = PositiveInt
    max_position_embeddings: int = PositiveInt
    hidden_act: Literal["gelu_new", "gelu", "relu"]
    layer_norm_eps: float = Field(gt=0)
    initializer_range: float = Field(gt=0)

    @model_validator(mode="after")
    def _heads_divide(self) -> "ModelConfig":
        if self.hidden_size % self.num_attention_heads:
            divisors = [n for n in range(1, self.hidden_size + 1) if self.hidden_size % n == 0]
            nearest = sorted(divisors, key=lambda n: abs(n - self.num_attention_heads))[:4]
            raise ValueError(
                f"num_attention_heads={self.num_attention_heads} does not divide hidden_size={self.hidden_size};"
                f" nearest that do: {', '.join(map(str, sorted(nearest)))}"
            )
        return self


class SharingConfig(Section):
    """How many distinct attention and FFN blocks serve the layers; layer i of L uses block i * groups // L."""

    name: str
    attention_groups: int = PositiveInt
    ffn_groups: int = PositiveInt


class PairLabel(Section):
    """One label of an inter-sentence objective: a kind of pair (a function in data/pairs.py) and its share."""

    kind: str
    share: float = Field(gt=0, le=1)


class InterSentenceConfig(Section):
    """Which segment pairs are made and told apart. No labels: consecutive pairs without a loss."""

    name: str
    labels: tuple[PairLabel, ...]
    single_sentence_chunks: Literal["drop", "other-document"]

    @model_validator(mode="after")
    def _shares_sum_to_one(self) -> "InterSentenceConfig":
        if self.labels and not math.isclose(sum(label.share for label in self.labels), 1.0, abs_tol=1e-6):
            raise ValueError(f"the shares of labels sum to {sum(label.share for label in self.labels):g}, not to 1")
        if len(self.labels) == 1:
            raise ValueError("one label cannot be told apart from another: give none, or two and more")
        if len({label.kind for label in self.labels}) < len(self.labels):
            raise ValueError("a kind of pair stands twice among the labels")
        return self


class HubDataset(Section):
    """A data set of the Hugging Face Hub, or a local folder in a format that `datasets` reads."""

    path: str
    name: str | None
    split: str


class CorpusConfig(Section):
    """Where text comes from, how it falls into documents and sentences, and how it is cleaned."""

    name: str
    source: Literal["package", "files", "hub"]
    path: str | None
    documents: Literal["file", "blank-line"]
    sentences: Literal["split", "line"]
    text_field: str
    language: str
    lower_case: bool
    strip_accents: bool
    dev_share: float = Field(gt=0, lt=1)
    datasets: tuple[HubDataset, ...]


class AddedCorpusConfig(Section):
    """Text that is trained on beside the corpus, and cleaned and split like it; source=none: there is none.

    The tokenizer and the held-out documents stay those of the corpus.
    """

    name: str
    source: Literal["none", "package", "files", "hub"]
    path: str | None
    documents: Literal["file", "blank-line"]
    sentences: Literal["split", "line"]
    text_field: str
    datasets: tuple[HubDataset, ...]


class TokenizerConfig(Section):
    """A SentencePiece model: trained on the corpus, or an existing file; or an existing tokenizer.json.

    digit_commas: keep pieces such as "2006,", or split the comma off as the release does.
    """

    name: str
    model_file: str | None
    digit_commas: Literal["keep", "split"]
    vocab_size: int = Field(ge=32)
    training_sentences: int | None = Field(ge=1)
    character_coverage: float | None = Field(gt=0, le=1)


class MaskingConfig(Section):
    """n-gram masking. max_predictions counts pieces a sequence; null: no cap."""

    name: str
    probability: float = Field(gt=0, lt=1)
    max_predictions: int | None = Field(gt=0)
    max_ngram: int = PositiveInt
    mask_share: float = Share
    random_share: float = Share

    @model_validator(mode="after")
    def _shares_fit(self) -> "MaskingConfig":
        if self.mask_share + self.random_share > 1 + 1e-9:
            raise ValueError(f"mask_share + random_share is {self.mask_share + self.random_share:g}, more than 1")
        return self


_Decay = Annotated[float, Field(ge=0, lt=1)]


class OptimizerConfig(Section):
    """Optimizer and schedule. warmup is a share of the budget."""

    name: str
    learning_rate: float | None = Field(gt=0)
    betas: tuple[_Decay, _Decay]
    eps: float = Field(gt=0)
    weight_decay: float = Field(ge=0)
    warmup: float = Share
    max_grad_norm: float = Field(gt=0)


class BudgetConfig(Section):
    """How long to train: value counts optimizer steps, seconds of the training clock, or pieces without padding.

    The schedule is always that of the whole budget; stop_at is the share of it at which the run ends, below 1 for a
    trunk that other runs go on from.
    """

    name: str
    unit: Literal["steps", "seconds", "tokens"]
    value: float = Field(gt=0)
    stop_at: float = Field(gt=0, le=1)

    @model_validator(mode="after")
    def _whole_steps(self) -> "BudgetConfig":
        if self.unit != "seconds" and self.value != int(self.value):
            raise ValueError(f"value={self.value} is not a whole number of {self.unit}")
        return self


class EvaluationConfig(Section):
    """Intrinsic evaluation on held-out documents; sizes count segment pairs."""

    num_pairs: int = PositiveInt
    num_probe_pairs: int = PositiveInt
    num_curve_points: int = Field(ge=0)
    num_curve_pairs: int = PositiveInt
    batch_size: int = PositiveInt
    seed: int = Field(ge=0)


class MachineConfig(Section):
    """How a run is computed; must not change what is computed beyond rounding."""

    device: Literal["auto", "cpu", "cuda"]
    precision: Literal["auto", "bf16", "fp32"]
    compile: bool
    threads: int | None = Field(gt=0)
    workers: int | None = Field(gt=0)
    micro_batch_size: int | None = Field(gt=0)
    checkpoint_seconds: float = Field(ge=0)
    log_every_steps: int = PositiveInt
    tensorboard: bool


class ScaleBudget(Section):
    """The scale's length of a run in each unit of budget."""

    steps: float
    seconds: float
    tokens: float


class ScaleConfig(Section):
    """Name of the scale, its default seeds and its budgets; what it sets elsewhere stands there.

    roles names by key what stands here for a value of the paper; experiment files ask for it as
    `${scale.roles.KEY.VALUE}`.
    """

    name: str
    seeds: tuple[int, ...]
    budget: ScaleBudget
    roles: dict[str, dict[str, str | int]]


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
    embedding_size: int = PositiveInt
    projection: Literal["auto", "always"]
    max_sequence_length: int = Field(ge=8)
    short_sequence_probability: float = Share
    batch_size: int = PositiveInt
    dropout: float = Field(ge=0, lt=1)
    seed: int = Field(ge=0)
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
        if micro is not None and self.batch_size % min(micro, self.batch_size):
            raise ValueError(f"machine.micro_batch_size={micro} does not divide batch_size={self.batch_size}")
        return self

    @property
    def learning_rate(self) -> float:
        """Peak learning rate: as set, or the paper's scaled by the square root of the batch."""
        if self.optimizer.learning_rate is not None:
            return self.optimizer.learning_rate
        return PAPER_LEARNING_RATE * math.sqrt(self.batch_size / PAPER_BATCH_SIZE)

    def identity(self) -> dict[str, Any]:
        """What a run's name is made of: everything that decides its numbers.

        Left out: the scale's name (all it sets stands elsewhere), paths (fingerprints of what they lead to take their
        place), and machine.*, unless the budget is in seconds, where the machine decides how many steps there are.
        """
        content = self.model_dump(mode="json")
        del content["scale"]
        if self.budget.unit != "seconds":
            del content["machine"]
        del content["corpus"]["path"], content["added_corpus"]["path"], content["tokenizer"]["model_file"]
        return content


def digest(content: Any) -> str:
    """Short stable hash (12 hex digits) of anything that JSON can hold."""
    text = json.dumps(content, sort_keys=True, ensure_ascii=False)
    return hashlib.blake2b(text.encode(), digest_size=6).hexdigest()


def _register_resolvers() -> None:
    def hidden_over(divisor: int, *, _root_: Any) -> int:
        hidden_size = _root_.model.hidden_size
        if hidden_size % divisor:
            raise ConfigError(f"model.hidden_size={hidden_size} does not divide by {divisor}")
        return hidden_size // divisor

    OmegaConf.register_new_resolver("hidden_over", hidden_over, replace=True)
    OmegaConf.register_new_resolver("multiply", lambda a, b: a * b, replace=True)


@contextmanager
def _hydra() -> Iterator[None]:
    if GlobalHydra.instance().is_initialized():  # nested initialisation is an error in Hydra
        yield
        return
    _register_resolvers()
    with initialize_config_dir(str(paths.CONF), version_base="1.3"):
        yield


def groups() -> dict[str, list[str]]:
    """Every configuration group with its options, read from the file names under conf/."""
    found: dict[str, list[str]] = {}
    for file in sorted(paths.CONF.glob("*/*.yaml")):
        if file.parent.name == "task":  # no choice of a run: each fine-tuning reads one
            continue
        found.setdefault(file.parent.name, []).append(file.stem)
    return found


def load(overrides: Sequence[str] = ()) -> RunConfig:
    """The configuration of one run, composed from conf/ and `key=value` overrides.

    Raises:
        ConfigError: an unknown key or option, a wrong type, a value that does not fit; the text names key and value.
    """
    with _hydra():
        for override in parse(overrides):
            if override.is_sweep_override():
                raise ConfigError(f"{override.input_line} names several values, and one run takes one")
        try:
            composed = compose("config", overrides=list(overrides), return_hydra_config=True)
            choices = {key: value for key, value in composed.hydra.runtime.choices.items() if "/" not in key}
            names = {f"{group}.name": str(choice) for group, choice in choices.items()}
            OmegaConf.set_struct(composed, False)
            del composed["hydra"]
            for key, choice in names.items():
                OmegaConf.update(composed, key, choice)
            missing = sorted(OmegaConf.missing_keys(composed))
            if missing:
                raise ConfigError("; ".join(f"{key} must be given: {key}=VALUE" for key in missing))
            content = OmegaConf.to_container(composed, resolve=True)
        except (HydraException, OmegaConfBaseException) as error:
            raise ConfigError(_explain(error)) from error
    return validate(content)


def validate(content: Any) -> RunConfig:
    """A frozen RunConfig from plain data, as composed or as read back from run.yaml.

    Raises:
        ConfigError: every key that does not fit, with its value and what is allowed.
    """
    try:
        # JSON mode: lists may stand for tuples, numbers stay strict.
        return RunConfig.model_validate_json(json.dumps(content))
    except ValidationError as error:
        raise ConfigError("\n".join(_describe(detail) for detail in error.errors())) from error


def load_option(group: str, option: str, section: type[AnySection]) -> AnySection:
    """One option of a group by itself, such as the pairs of `inter_sentence: nsp`, which other runs are scored on."""
    content = OmegaConf.to_container(OmegaConf.load(paths.CONF / group / f"{option}.yaml"), resolve=True)
    assert isinstance(content, dict)
    return section.model_validate_json(json.dumps(content | {"name": option}))


def _describe(detail: Any) -> str:
    key = ".".join(str(part) for part in detail["loc"])
    if detail["type"] == "extra_forbidden":
        return _unknown(key)
    if detail["type"] == "missing":
        return f"{key} must be given"
    if detail["type"] == "value_error":
        return f"{key + ': ' if key else ''}{detail['ctx']['error']}"
    value = detail["input"]
    shown = value if isinstance(value, str) else json.dumps(value)
    return f"{key}={shown}: {detail['msg']}"


def _known_keys() -> list[str]:
    def walk(section: type[BaseModel], prefix: str) -> Iterator[str]:
        for name, field in section.model_fields.items():
            yield prefix + name
            if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
                yield from walk(field.annotation, f"{prefix}{name}.")

    return [key for key in walk(RunConfig, "") if not key.endswith(".name") and not key.startswith("scale.")]


def _unknown(key: str) -> str:
    known = [*_known_keys(), *groups()]
    last = key.rpartition(".")[2]
    section = key.removesuffix(last)
    siblings = [k.removeprefix(section) for k in known if section and k.startswith(section)]
    near = (
        [k for k in known if k.rpartition(".")[2] == last]
        or [section + k for k in difflib.get_close_matches(last, siblings, n=1, cutoff=0.25)]
        or difflib.get_close_matches(key, [] if siblings else known, n=1)
    )
    if near:
        return f"unknown key {key}; did you mean {near[0]}?"
    return f"unknown key {key}; " + (
        f"{section}* has {', '.join(siblings)}" if siblings else "see `albert-lab config show`"
    )


def _explain(error: Exception) -> str:
    text = str(error).split("\nSee https://")[0].strip()
    unknown = re.search(r"Could not override '([^']+)'", text)
    if unknown:
        return _unknown(unknown.group(1))
    option = re.search(r"(?:In '[^']*': )?Could not find '(\w+)/([^']+)'", text)
    if option:
        group, value = option.groups()
        options = groups().get(group, [])
        near = difflib.get_close_matches(value, options, n=1)
        hint = f"; did you mean {group}={near[0]}?" if near else ""
        return f"{group}={value} is unknown{hint} (allowed: {', '.join(options)})"
    place = re.search(r"\n\s*full_key: (\S+)", text)
    if place:
        cause = text[: place.start()].removeprefix("ConfigError raised while resolving interpolation: ")
        return f"{place.group(1)}: {cause}"
    return re.sub(r"\s*\n\s*", "; ", text)


def parse(overrides: Sequence[str]) -> list[Override]:
    """Overrides in Hydra's own grammar (`a=1,2`, `range(0,5)`, `glob(*)`, quoting).

    Raises:
        ConfigError: a text that is not an override, the removal of a key, a setting of Hydra itself, or a group's
            option that is not a name.
    """
    with _hydra():
        parser = OverridesParser.create(config_loader=GlobalHydra.instance().config_loader())
        parsed = []
        for text in overrides:
            if not re.match(r"[^=]+=", text) and not text.startswith("~"):
                raise ConfigError(f"{text!r} is not of the form KEY=VALUE")
            try:
                (override,) = parser.parse_overrides([text])
            except HydraException as error:
                raise ConfigError(f"{text!r} cannot be read as KEY=VALUE: {_explain(error)}") from error
            _refuse_unusable(override)
            parsed.append(override)
        return parsed


def _refuse_unusable(override: Override) -> None:
    if override.is_delete():
        raise ConfigError(f"{override.input_line}: a key cannot be removed; every key is needed")
    key = override.key_or_group
    if re.match(r"hydra\b", key):
        raise ConfigError(f"unknown key {key}")
    options = groups().get(key)
    if options and not override.is_sweep_override() and not isinstance(override.value(), str):
        raise ConfigError(f"{override.input_line}: {key} takes one of {', '.join(options)}")


def axes(overrides: Sequence[str]) -> dict[str, list[str]]:
    """Each overridden key with its values as override texts: one value where it is fixed, several where it is swept.

    Raises:
        ConfigError: a text that is not an override, or an interval, which has no list of values.
    """
    found: dict[str, list[str]] = {}
    with _hydra():
        for override in parse(overrides):
            key = override.get_key_element()
            if override.is_sweep_override():
                value = override.value()
                if isinstance(value, Sweep) and override.is_interval_sweep():
                    raise ConfigError(f"{override.input_line}: an interval has no list of values; name them: a,b,c")
                found[key] = list(override.sweep_string_iterator())
                if not found[key]:
                    raise ConfigError(f"{override.input_line} names no value")
            else:
                found[key] = [str(override.get_value_element_as_str())]
    return found


def expand(grid: dict[str, list[str]]) -> list[dict[str, str]]:
    """The points of a grid: every combination of its values, the last axis moving fastest."""
    return [dict(zip(grid, values, strict=True)) for values in itertools.product(*grid.values())]


def complete(incomplete: str) -> list[str]:
    """Overrides that begin with a text, for shell completion; empty where there is none."""
    from hydra.plugins.completion_plugin import DefaultCompletionPlugin

    with _hydra():
        loader = GlobalHydra.instance().config_loader()
        return DefaultCompletionPlugin(loader)._query("config", incomplete)
