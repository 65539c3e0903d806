"""The record of one run, and its log."""

import re
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    field_serializer,
    field_validator,
    model_validator,
)

from albert_lab import files
from albert_lab.config.schema import RESULTS_VERSION, RunConfig
from albert_lab.config.section import default
from albert_lab.documents import Documents
from albert_lab.errors import DamagedFileError
from albert_lab.record import Name, Record
from albert_lab.runs import commit
from albert_lab.runs.run import RECORD, StartFrom
from albert_lab.score import Score
from albert_lab.storage import write_atomically
from albert_lab.training.log import METRICS, REMEDY

LAYERS = "layers.json"
REPLACED = "results.before.json"
_COMMIT_DIGITS = 12  # they identify it


class _Line(BaseModel):
    """A line of the log of a run, with further numbers under other keys."""

    model_config = ConfigDict(extra="allow", allow_inf_nan=False)
    __pydantic_extra__: dict[str, str | float | None]  # pyright: ignore[reportIncompatibleVariableOverride]

    event: str
    step: int
    share: float | None = None
    loss: float | None = None


def having(*keys: str) -> AfterValidator:
    def check_keys(content: dict[str, Any]) -> dict[str, Any]:
        if missing := [key for key in keys if key not in content]:
            raise ValueError(f"{missing[0]} is missing")
        return content

    return AfterValidator(check_keys)


# A boolean is no number; nothing here is negative.
_Count = Annotated[int, Field(strict=True, ge=0, lt=1 << 63)]
_Amount = Annotated[float, Field(strict=True, ge=0)]
_SEED = re.compile(r"_seed(\d+)(?:_|$)")  # in the name of a run


class Training(Record):
    """The cost of training. training_seconds excludes evaluation, checkpoints and compilation.

    Tokens per second exclude padding. inference_tokens_per_second is that of two seconds of forward passes of encoder
    and heads, not compiled, on the held-out set for masked language modelling at the end; None in older records.
    final_loss is the mean training loss of the last steps (nats; see training/pretrain.py).
    """

    steps: _Count
    tokens: _Count
    training_seconds: _Amount
    total_seconds: _Amount
    tokens_per_second: _Amount
    inference_tokens_per_second: _Amount | None = None
    data_wait_share: _Amount
    peak_memory_bytes: _Count
    final_loss: _Amount


TRAINING_SPEED, INFERENCE_SPEED = "tokens_per_second", "inference_tokens_per_second"

# Columns of the table of runs that are neither scores nor settings.
NUMBERS = ("parameters", "encoder_parameters", "train_flops_per_token", *Training.model_fields)


class Stage(Record):
    """The training data of a stage of the length schedule; shares of chunks and of text (tokens) of its first epoch.

    dropped: chunks of a single sentence; truncated: tokens of chunks that are longer than the stage's sequences.
    """

    max_sequence_length: int
    batch_size: int
    first_step: int
    steps: int
    epochs: float
    dropped_chunk_share: float
    dropped_text_share: float
    truncated_text_share: float


class Data(Record):
    """The training data: rates over the training batches; shares of text, pairs and chunks of epoch 0.

    document_start_share is the share of chunks that begin a document; median_document_sequences is the length of the
    median document in full sequences. With a length schedule, shares are those of its last stage, and stages has all.
    epochs are those of pairs, over all stages.
    """

    mask_rate: float
    padding_share: float
    label_shares: dict[str, float]
    cross_document_share: float
    dropped_chunk_share: float
    dropped_text_share: float
    document_start_share: float
    median_document_sequences: float
    epochs: float
    train_documents: int
    dev_documents: int
    stages: tuple[Stage, ...] = ()
    unknown_share: float = default(0.0)  # of the tokens of the training text
    repeated_paragraphs: int = default(0)  # dropped from the training text, since they repeat held-out text

    @property
    def passes(self) -> float:
        """Tokens of text that the run read, over those of its text: an epoch leaves out what is dropped or truncated.

        Of a run without stages only the share of dropped text is known.
        """
        if not self.stages:
            return self.epochs * (1 - self.dropped_text_share)
        return sum(stage.epochs * (1 - stage.dropped_text_share - stage.truncated_text_share) for stage in self.stages)


class Provenance(Record):
    """The place, time, software and hardware of a run.

    threads are those of one process; devices has the device name of each process; nodes is the number of machines.
    processes_from_step maps each step at which the number of processes changed to the new number; micro_batch_size is
    the number of sequences of a forward pass; jobs is how many runs trained at a time. commit is that of the checkout
    from which the code was imported, as runs/commit.py returns it; None without a checkout. Newer fields are empty or
    None in older records.
    """

    albert_lab: str
    commit: str | None = None
    python: str
    packages: dict[str, str]
    platform: str
    processor: str
    cores: int
    threads: int
    device: str
    precision: str
    finished: str
    processes: int = 1
    devices: tuple[str, ...] = ()
    nodes: int = 1
    processes_from_step: dict[int, int] = Field(default={})
    micro_batch_size: int | None = None
    jobs: int | None = None

    @property
    def machine(self) -> str:
        return f"{self.platform}, {self.processor}, {self.cores} cores"

    @property
    def device_names(self) -> str:
        """The different devices of its processes; older records only have their kind."""
        return ", ".join(sorted(set(self.devices))) or self.device

    @property
    def software(self) -> str:
        return " ".join(["python", self.python, *(f"{name} {of}" for name, of in sorted(self.packages.items()))])

    @property
    def code(self) -> str | None:
        """The commit by its first digits, and whether the checkout had other changes; None without a checkout."""
        if not self.commit:
            return None
        digits = self.commit.removesuffix(commit.DIRTY)
        return digits[:_COMMIT_DIGITS] + (" with uncommitted changes" if self.commit != digits else "")


class RunRecord(Record):
    """The full record of a finished run; its file is written last and marks the run as done.

    documents are counts and sums of answers by held-out document, in the same order for all runs of one evaluation set:
    of each score on held-out text; of `mlm_loss`; and of the right answers of single segments, after SEGMENTS.
    """

    name: Name
    results_version: int = Field(strict=True, ge=1, le=RESULTS_VERSION)
    config: RunConfig
    fingerprints: Annotated[dict[str, str], having("corpus", "tokenizer")]
    start_from: StartFrom | None = None
    own_code: dict[Name, str] = Field(default={}, exclude_if=lambda files: not files)  # digests by name
    evaluation_set: str
    parameters: Annotated[dict[str, _Count], having("total", "encoder")]
    train_flops_per_token: _Amount
    scores: dict[str, Score]
    training: Training
    data: Data
    provenance: Provenance
    documents: dict[str, Documents] = Field(default={})

    @field_serializer("documents")
    def _with_n_once(self, documents: dict[str, Documents]) -> dict[str, dict[str, Any]]:
        """Numbers of answers that another score has, too, are given by the name of that score."""
        first: dict[tuple[int, ...], str] = {}
        return {
            name: {
                "n": kept.n if (same := first.setdefault(kept.n, name)) == name else same,
                "sum": [int(part) if part.is_integer() else part for part in kept.sum],
            }
            for name, kept in documents.items()
        }

    @field_validator("documents", mode="before")
    @classmethod
    def _with_every_n(cls, documents: Any) -> Any:
        """Each score with its own numbers of answers, where its file names another score instead."""
        if not isinstance(documents, dict):
            return documents
        return {
            name: kept | {"n": documents[kept["n"]]["n"]}
            if isinstance(kept, dict) and kept.get("n") in [*documents]
            else kept
            for name, kept in documents.items()
        }

    @field_validator("scores")
    @classmethod
    def _are_shares(cls, scores: dict[str, Score]) -> dict[str, Score]:
        for name, score in scores.items():
            if name.endswith("_accuracy") and score.value < 0:
                raise ValueError(f"{name}={score.value} is negative")
        return scores

    @model_validator(mode="after")
    def _has_the_seed_of_its_name(self) -> Self:
        if (named := _SEED.search(self.name)) and int(named[1]) != self.config.seed:
            raise ValueError(f"config.seed={self.config.seed} is not the seed of its name, {self.name}")
        return self


def write(folder: Path, record: RunRecord) -> None:
    write_atomically(folder / RECORD, record.model_dump_json(indent=2) + "\n")
    (folder / REPLACED).unlink(missing_ok=True)


def set_aside(folder: Path) -> None:
    """Keep the record of a run that is trained again as REPLACED, until its new record is written."""
    (folder / RECORD).replace(folder / REPLACED)


def read(folder: Path) -> RunRecord | None:
    """The record in a run's folder; None if the run is not finished.

    Raises:
        DamagedFileError: the file is not a record.
    """
    file = folder / RECORD
    return files.read_json(file, RunRecord, REMEDY) if file.exists() else None


class _Version(BaseModel):
    results_version: int


def check(folder: Path) -> None:
    """Check a run's record before it is used; a record of another version of this package is not checked.

    Raises:
        DamagedFileError: the file is not a record, or is the record of another run.
    """
    file = folder / RECORD
    if not file.exists() or files.read_json(file, _Version, REMEDY).results_version != RESULTS_VERSION:
        return
    record = read(folder)
    if record and record.name != folder.name:
        raise DamagedFileError(file, f"is the record of another run, {record.name}", REMEDY)


def read_metrics(folder: Path) -> list[dict[str, Any]]:
    """The lines of a run's metrics.jsonl; a last line that was cut off by a kill is left out.

    Raises:
        DamagedFileError: another line does not belong to this log.
    """
    file = folder / METRICS
    lines = files.read_json_lines(file, _Line, REMEDY) if file.exists() else []
    return [line.model_dump(exclude_unset=True) for line in lines]
