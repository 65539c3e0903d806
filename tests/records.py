"""Toy records of runs and fine-tunings, for tests of code that reads records."""

from collections.abc import Mapping, Sequence
from functools import cache

from albert_lab.config.compose import load
from albert_lab.config.schema import RunConfig
from albert_lab.runs.reported import CurvePoint, FilledColumn, ReportedRun
from albert_lab.runs.results import Data, Provenance, RunRecord, Training
from albert_lab.score import Score, by_block
from albert_lab.tasks.records import Attempt, Evaluation, ExampleSet, FinetuningRecord
from albert_lab.tasks.task import load_task
from albert_lab.training.layers import Layer


@cache
def _smoke() -> RunConfig:
    return load(["scale=smoke"])


def toy_score(
    value: float,
    by: str = "head",
    *,
    loss: float,
    floor: float = 50,
    lexical_floor: float | None = None,
) -> Score:
    low, high = value - 3, value + 3
    return Score(
        value=value,
        n=1000,
        low=low,
        high=high,
        floor=floor,
        lexical_floor=lexical_floor,
        by=by,
        loss=loss,
    )


def toy_record(
    config: RunConfig | None = None,
    *,
    name: str = "sop_all-shared_seed0",
    mlm: float = 25,
    nsp: float = 50,
    sop: float = 60,
    by: str = "head",
    evaluation_set: str = "set",
    seed: int | None = None,
) -> RunRecord:
    config = config or _smoke()
    return RunRecord(
        name=name,
        results_version=1,
        config=config.model_copy(update={} if seed is None else {"seed": seed}),
        fingerprints={"corpus": "c0ffee", "tokenizer": "bead"},
        evaluation_set=evaluation_set,
        parameters={"total": 31_000, "encoder": 30_000, "with_pooler": 30_500},
        train_flops_per_token=190_000.0,
        scores={
            "mlm_accuracy": toy_score(mlm, floor=5, loss=5 - mlm / 20),
            "nsp_accuracy": toy_score(nsp, by, loss=0.75, lexical_floor=50.5),
            "sop_accuracy": toy_score(sop, by, loss=0.65, lexical_floor=58),
        },
        training=Training(
            steps=12,
            tokens=6_000,
            training_seconds=2.0,
            total_seconds=3.5,
            tokens_per_second=3_000.0,
            inference_tokens_per_second=9_000.0,
            peak_memory_bytes=300 * 2**20,
            final_loss=6.125,
        ),
        data=Data(
            dropped_text_share=0.04,
            epochs=0.5,
            train_documents=200,
            dev_documents=49,
        ),
        provenance=Provenance(
            albert_lab="0.1.0",
            commit=None,
            python="3.11.7",
            packages={"torch": "2.13.0", "numpy": "2.4.6"},
            platform="Linux",
            processor="toy",
            cores=2,
            threads=2,
            device="cpu",
            devices=("cpu",),
            precision="bf16",
            jobs=1,
            finished="2026-11-21",
        ),
    )


def toy_curve_point(step: int, **numbers: float | None) -> CurvePoint:
    return {"step": step, "training_seconds": step / 50, **numbers}


def toy_layer(layer: int, **numbers: float) -> Layer:
    """What one layer changes, over 1,200 tokens."""
    rest = dict.fromkeys(("l2_distance", "cosine_similarity", "degrees"), 1.0)
    return Layer.model_validate(
        {"corpus": "sotu", "layer": layer, "token": "mean", "n": 1200} | rest | numbers
    )


def scored(value: float, floor: float = 50.0, n: int = 2_000, **more) -> Score:
    """A score without an interval of its own, unless more has one."""
    return Score.model_validate({"value": value, "floor": floor, "n": n, "by": "head"} | more)


def toy_run(
    name: str,
    seed: int,
    numbers: Mapping[str, float | Score],
    columns: tuple[FilledColumn, ...] = (),
    **provenance,
) -> ReportedRun:
    """A run that has these numbers alone, of which scores also have what belongs to them."""
    base = _base()
    changed: dict[str, object] = {
        "name": name,
        "config": base.config.model_copy(update={"seed": seed}),
        "scores": {key: item for key, item in numbers.items() if isinstance(item, Score)},
        "provenance": base.provenance.model_copy(update=provenance),
    }
    run = ReportedRun(record=base.model_copy(update=changed), columns=columns)
    # In place of what is computed from a whole record.
    vars(run)["numbers"] = {
        key: item.value if isinstance(item, Score) else item for key, item in numbers.items()
    }
    return run


@cache
def _base() -> RunRecord:
    return toy_record()


_task = cache(load_task)


def toy_finetuning(
    run: str,
    name: str,
    best: float,
    *,
    seed: int = 0,
    n: int = 200,
    last: float = 49.0,
    floor: float = 40.0,
    parts: Mapping[str, float] | None = None,
    examples: Sequence[float] | None = None,
) -> FinetuningRecord:
    """A fine-tuning on a task of the project; parts are its further scores, by name."""
    task = _task(name)

    def evaluation(step: int, value: float) -> Evaluation:
        main = Score(value=value, n=n, floor=floor, by="fine-tuned")
        scores = {
            part: main.model_copy(update={"value": value}) for part, value in (parts or {}).items()
        }
        return Evaluation(step=step, main=main, scores=scores, threshold=None)

    content = {
        "max_sequence_length": 32,
        "steps": 6,
        "batch_size": 8,
        "learning_rate": 0.001,
        "question_length": None,
    }
    settings = task.settings["smoke"].model_copy(update=content)
    train = ExampleSet(used=64, fingerprint="train", issues="")
    ends = evaluation(4, best), evaluation(6, last)
    return FinetuningRecord(
        task=name,
        title=task.title,
        identity=f"{run} {name} {seed}",
        run=run,
        weights="pretrained",
        start_from=None,
        seed=seed,
        scale="smoke",
        settings=settings,
        train=train,
        dev=ExampleSet(used=n, fingerprint=f"{name} dev", issues=""),
        best=ends[0],
        last=ends[1],
        documents=by_block(examples) if examples else None,
        attempts=(Attempt(learning_rate=0.001, end_loss=0.5, chance_loss=0.7, diverged=()),),
        diverged=(),
        total_seconds=2.0,
    )


def toy_column(*finetunings: FinetuningRecord) -> FilledColumn:
    """A column with the fine-tunings of one task."""
    return FilledColumn(
        task=finetunings[0].task, title=finetunings[0].title, finetunings=finetunings
    )
