"""The record of one finished run: scores, cost, training data, software and hardware; and the log
of a run.
"""

import platform
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BaseModel, Field, field_serializer, field_validator, model_validator

from albert_lab import __version__, files, own_code, paths
from albert_lab.config.schema import RESULTS_VERSION, ConversionConfig, RunConfig
from albert_lab.config.section import default, having
from albert_lab.data.corpus import REPEATED
from albert_lab.data.shards import Shards
from albert_lab.errors import DamagedFileError
from albert_lab.files import Name, Record, Signed
from albert_lab.machine import JOBS, cores, cpu_model, whole_number
from albert_lab.model.counts import count, count_training_flops
from albert_lab.runs.run import RECORD, Run, StartFrom, read_import
from albert_lab.score import Documents, Score
from albert_lab.storage import write_atomically
from albert_lab.training.log import METRICS, REMEDY

if TYPE_CHECKING:  # it loads torch, and the thread count must be set before that
    from albert_lab.training.pretrain import Pretraining

LAYERS = "layers.json"
_REMEDY = "put it back, or remove it, and the same command scores the run again from its weights"
PACKAGES = ("torch", "numpy", "sentencepiece", "sentencex", "hydra-core")


class _Line(BaseModel, extra="allow", allow_inf_nan=False):
    """A line of the log of a run, with further numbers under other keys."""

    __pydantic_extra__: dict[str, str | float | None]  # pyright: ignore[reportIncompatibleVariableOverride]

    event: str
    step: int
    share: float | None = None
    loss: float | None = None


# A boolean is no number; nothing here is negative.
_Count = Annotated[int, Field(strict=True, ge=0, lt=1 << 63)]
_Amount = Annotated[float, Field(strict=True, ge=0)]


class Training(Record, extra="ignore"):  # records from before say more, here and below
    """The cost of training. training_seconds excludes evaluation, checkpoints and compilation.

    Tokens per second exclude padding. inference_tokens_per_second is that of two seconds of forward
    passes of encoder and heads, not compiled, on the held-out set for masked language modelling at
    the end; None in older records. final_loss is the mean training loss of the last steps (nats;
    see training/pretrain.py). A run of no steps has neither a speed of training nor a loss.
    """

    steps: _Count
    tokens: _Count
    training_seconds: _Amount
    total_seconds: _Amount
    tokens_per_second: _Amount | None
    inference_tokens_per_second: _Amount | None
    peak_memory_bytes: _Count
    final_loss: _Amount | None


# Columns of the table of runs that are neither scores nor settings.
NUMBERS = ("parameters", "encoder_parameters", "train_flops_per_token", *Training.model_fields)


class Stage(Record, extra="ignore"):
    """The training data of a stage of the length schedule; shares of text (tokens) of its first
    epoch.

    dropped: chunks of a single sentence; truncated: tokens of chunks that are longer than the
    stage's sequences.
    """

    max_sequence_length: int
    epochs: float
    dropped_text_share: float
    truncated_text_share: float


class Data(Record, extra="ignore"):
    """The training data: shares of text and pairs of epoch 0.

    With a length schedule, shares are those of its last stage, and stages has all. epochs are those
    of pairs, over all stages.
    """

    dropped_text_share: float
    epochs: float
    train_documents: int
    dev_documents: int
    stages: tuple[Stage, ...] = ()
    unknown_share: float = default(0.0)  # of the tokens of the training text
    # dropped from the training text, since they repeat held-out text
    repeated_paragraphs: int = default(0)
    # Of the runs whose weights it started from, which its own do not count.
    earlier_steps: int = default(0)
    earlier_tokens: int = default(0)

    @property
    def passes(self) -> float:
        """Tokens of text that the run read, over those of its text: an epoch leaves out what is
        dropped or truncated.

        Of a run without stages only the share of dropped text is known.
        """
        if not self.stages:
            return self.epochs * (1 - self.dropped_text_share)
        return sum(
            stage.epochs * (1 - stage.dropped_text_share - stage.truncated_text_share)
            for stage in self.stages
        )


# What a line on a conversion says of the fields of a shape that it changes.
_CHANGED = {
    "embedding_size": "E",
    "num_layers": "layers",
    "attention_groups": "attention blocks",
    "ffn_groups": "FFN blocks",
    "max_position_embeddings": "positions",
}


class Conversion(Record):
    """What was changed of the weights that a run started from (model/conversion.py).

    changes has the fields of the shape that differ, each with its value before and after.
    unexplained is the share of the variance of the first layer's input that smaller embeddings
    lost, before any training.
    """

    changes: dict[str, tuple[Any, Any]]
    unexplained: float | None = None

    def as_text(self, rules: ConversionConfig) -> str:
        """What was changed, and how, in one line."""
        details = {
            "attention_groups": rules.sharing,
            "ffn_groups": rules.sharing,
            "num_layers": rules.layers,
        }
        if self.unexplained is not None:
            details["embedding_size"] = f"{self.unexplained:.1%} of the first layer's input is lost"
        parts: list[str] = []
        for key, (before, after) in self.changes.items():
            if key in _CHANGED:
                detail = f" ({details[key]})" if key in details else ""
                parts.append(f"{_CHANGED[key]} from {before} to {after}{detail}")
        return ", ".join(parts)


class Provenance(Record, extra="ignore"):
    """The place, time, software and hardware of a run.

    threads are those of one process; devices has the device name of each process. jobs is how many
    runs trained at a time; None in older records. commit is that of the checkout from which the
    code was imported, or its wheel built, with -dirty after it if it had changes; None if unknown.
    """

    albert_lab: str
    commit: str | None
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
    devices: tuple[str, ...]
    jobs: int | None


class RunRecord(Signed):
    """The full record of a finished run; its file is written last and marks the run as done.

    own_code and scored_with have the digests of files by their names: of those that the training
    may depend on, and of those with measures. documents are counts and sums of answers by held-out
    document, in the same order for all runs of one evaluation set: of each score on held-out text,
    and of `mlm_loss`. conversion is that of the weights that it started from, if it has another
    shape. untrained are heads with random weights, of a run of no steps.
    """

    SIGNED = frozenset({"scores", "documents", "training"})

    name: Name
    results_version: int = Field(strict=True, ge=1, le=RESULTS_VERSION)
    config: RunConfig
    fingerprints: Annotated[dict[str, str], having("corpus", "tokenizer")]
    start_from: StartFrom | None = None
    own_code: dict[Name, str] = default({})
    scored_with: dict[Name, str] = default({})
    evaluation_set: str
    parameters: Annotated[dict[str, _Count], having("total", "encoder")]
    train_flops_per_token: _Amount
    scores: dict[str, Score]
    training: Training
    data: Data
    provenance: Provenance
    documents: dict[str, Documents] = Field(default={})
    conversion: Conversion | None = default(None)
    untrained: tuple[str, ...] = default(())

    @model_validator(mode="after")
    def _is_of_its_run(self) -> "RunRecord":
        """Its name is a hash of what decides the numbers; records of older versions were named by
        other rules.
        """
        if self.results_version < RESULTS_VERSION:
            return self
        run = Run(self.config, self.fingerprints, self.start_from, self.own_code)
        if (run.name, run.evaluation_set) != (self.name, self.evaluation_set):
            raise ValueError(
                f"changed by hand: its name is {self.name} and its evaluation_set "
                f"{self.evaluation_set}, but its content is that of {run.name} and "
                f"{run.evaluation_set}"
            )
        return self

    @field_serializer("documents")
    def _with_n_once(self, documents: dict[str, Documents]) -> dict[str, dict[str, Any]]:
        """Numbers of answers that another score has, too, are given by the name of that score."""
        first = {}
        content = {}
        for name, counted in documents.items():
            same = first.setdefault(counted.n, name)
            content[name] = {
                "n": counted.n if same == name else same,
                "sum": [int(part) if part.is_integer() else part for part in counted.sum],
            }
        return content

    @field_validator("documents", mode="before")
    @classmethod
    def _with_every_n(cls, documents: Any) -> Any:
        """Each score with its own numbers of answers, where its file names another score
        instead.
        """
        with suppress(TypeError, KeyError, AttributeError):  # of another form, which is refused
            for counted in documents.values():
                if isinstance(counted["n"], str):
                    counted["n"] = documents[counted["n"]]["n"]
        return documents


def make_record(
    run: Run,
    trained: "Pretraining",
    train: Shards,
    dev: Shards,
    devices: Sequence[str],
    *,
    device: str,
    precision: str,
    threads: int,
    commit: str | None,
) -> RunRecord:
    """The record of a finished pre-training.

    Args:
        devices: the name of the device of each process.
        device, precision, threads: those of a process.
        commit: of the code at the time of its import.
    """
    counts = count(run.config)
    conversion = None
    if trained.changes:
        conversion = Conversion(changes=trained.changes, unexplained=trained.progress.unexplained)
    return RunRecord(
        name=run.name,
        results_version=RESULTS_VERSION,
        config=run.config,
        fingerprints=run.fingerprints,
        start_from=run.start_from,
        own_code=dict(run.own_code),
        scored_with=own_code.of_measures(),
        evaluation_set=run.evaluation_set,
        parameters={
            "total": counts.total,
            "encoder": counts.encoder,
            "with_pooler": counts.with_pooler,
        },
        train_flops_per_token=count_training_flops(run.config),
        scores=trained.evaluation.scores,
        training=Training.model_validate(trained.cost),
        data=_data_of(run, trained, train, dev),
        provenance=Provenance(
            albert_lab=__version__,
            commit=commit,
            python=platform.python_version(),
            packages={package: version(package) for package in PACKAGES},
            platform=f"{platform.system()} {platform.machine()}",
            processor=cpu_model(),
            cores=cores(),
            threads=threads,
            device=device,
            precision=precision,
            finished=datetime.now(UTC).date().isoformat(),
            processes=len(devices),
            devices=tuple(devices),
            jobs=whole_number(JOBS) or None,
        ),
        documents=trained.evaluation.documents,
        conversion=conversion,
        untrained=trained.untrained,
    )


def _data_of(run: Run, trained: "Pretraining", train: Shards, dev: Shards) -> Data:
    """The training data of a finished pre-training, with the steps of the runs that it started
    from; those of imported weights are not known.
    """
    earlier_steps = earlier_tokens = 0
    if run.start_from and run.start_from.keep == "weights":
        earlier = read(paths.runs() / run.start_from.run)
        if earlier:
            earlier_steps = earlier.training.steps + earlier.data.earlier_steps
            earlier_tokens = earlier.training.tokens + earlier.data.earlier_tokens
    stages = tuple(
        Stage(
            max_sequence_length=stage.max_sequence_length,
            epochs=stage.epochs,
            dropped_text_share=stage.stats["dropped_text_share"],
            truncated_text_share=stage.stats["truncated_text_share"],
        )
        for stage in trained.stages
    )
    last = trained.stages[-1].stats
    return Data(
        dropped_text_share=last["dropped_text_share"],
        epochs=sum(stage.epochs for stage in stages),
        train_documents=train.num_documents,
        dev_documents=dev.num_documents,
        stages=stages if run.config.length_schedule.stages else (),
        unknown_share=train.meta["train"].get("unknown_share", 0.0),
        repeated_paragraphs=train.meta.get("dropped", {}).get(REPEATED, 0),
        earlier_steps=earlier_steps,
        earlier_tokens=earlier_tokens,
    )


def write(folder: Path, record: RunRecord) -> None:
    write_atomically(folder / RECORD, record.signed().model_dump_json(indent=2) + "\n")


def read(folder: Path, name: str | None = None) -> RunRecord | None:
    """The record in the folder of a run, or of the run of this name; None if the run is not
    finished.

    Raises:
        DamagedFileError: it cannot be read, or is that of another run.
    """
    file = folder / RECORD
    if not file.exists():
        return None
    record = files.read_json(file, RunRecord, _REMEDY)
    if name and record.name != name:
        raise DamagedFileError(file, f"is the record of {record.name}", _REMEDY)
    return record


def lacks_scores(folder: Path) -> bool:
    """Whether a run is finished, but was not scored with the measures that are included now."""
    included = own_code.of_measures()
    record = read(folder) if included else None
    if record is None:
        return False
    return not included.items() <= (record.own_code | record.scored_with).items()


def untrained_parts(folder: Path) -> tuple[str, ...]:
    """The heads with random weights of an imported model or of a finished run."""
    imported = read_import(folder)
    if imported:
        return imported.missing_parts
    record = read(folder)
    return record.untrained if record else ()


def read_metrics(folder: Path) -> list[dict[str, Any]]:
    """The lines of a run's metrics.jsonl; a last line that was cut off by a kill is left out."""
    file = folder / METRICS
    whole = files.read_bytes(file, REMEDY).split(b"\n")[:-1] if file.exists() else []
    lines = files.check(file, b"[" + b",\n".join(whole) + b"]", list[_Line], REMEDY)
    return [line.model_dump(exclude_unset=True) for line in lines]
