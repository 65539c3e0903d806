"""The record of a finished pre-training: scores, cost, training data, software and hardware."""

import os
import platform
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from typing import TYPE_CHECKING

from albert_lab import __version__
from albert_lab.config.schema import RESULTS_VERSION
from albert_lab.data.batches import StageData
from albert_lab.data.corpus import REPEATED
from albert_lab.data.shards import Shards
from albert_lab.machine import cores, cpu_model
from albert_lab.model.counts import count, count_training_flops
from albert_lab.runs import results
from albert_lab.runs.run import Run

if TYPE_CHECKING:  # it loads torch, and the thread count must be set before that
    from albert_lab.training.pretrain import Pretraining


def make_record(
    run: Run,
    trained: "Pretraining",
    train: Shards,
    dev: Shards,
    provenance: results.Provenance,
) -> results.RunRecord:
    """The record of a finished pre-training."""
    config = run.config
    counts = count(config)
    shown, plan = trained.shown, trained.stages[-1].stats
    kinds = [label.kind for label in config.inter_sentence.labels]
    return results.RunRecord(
        name=run.name,
        results_version=RESULTS_VERSION,
        config=config,
        fingerprints=run.fingerprints,
        start_from=run.start_from,
        own_code=dict(run.own_code),
        evaluation_set=run.evaluation_set,
        parameters={"total": counts.total, "encoder": counts.encoder, "with_pooler": counts.with_pooler},
        train_flops_per_token=count_training_flops(config),
        scores=trained.evaluation.scores,
        training=results.Training(
            steps=trained.steps,
            tokens=trained.tokens,
            training_seconds=trained.training_seconds,
            total_seconds=trained.total_seconds,
            tokens_per_second=trained.tokens / trained.training_seconds,
            inference_tokens_per_second=trained.inference_tokens_per_second,
            data_wait_share=trained.data_wait_share,
            peak_memory_bytes=trained.peak_memory_bytes,
            final_loss=trained.final_loss,
        ),
        data=results.Data(
            mask_rate=shown.masked / trained.tokens,
            padding_share=1 - trained.tokens / (trained.steps * config.batch_size * config.max_sequence_length),
            label_shares={kind: shown.labels[index] / shown.pairs for index, kind in enumerate(kinds)},
            cross_document_share=plan["cross_document_share"],
            dropped_chunk_share=plan["dropped_chunks"] / plan["chunks"],
            dropped_text_share=plan["dropped_text_share"],
            document_start_share=plan["document_start_share"],
            median_document_sequences=plan["median_document_sequences"],
            epochs=sum(stage.epochs for stage in trained.stages),
            train_documents=len(train.document_offsets) - 1,
            dev_documents=len(dev.document_offsets) - 1,
            unknown_share=train.meta["train"].get("unknown_share", 0.0),
            repeated_paragraphs=train.meta.get("dropped", {}).get(REPEATED, 0),
            stages=tuple(map(_stage, trained.stages)) if config.length_schedule.stages else (),
        ),
        provenance=provenance,
        documents=trained.evaluation.documents,
    )


def _stage(stage: StageData) -> results.Stage:
    return results.Stage(
        max_sequence_length=stage.max_sequence_length,
        batch_size=stage.batch_size,
        first_step=stage.first_step,
        steps=stage.steps,
        epochs=stage.epochs,
        dropped_chunk_share=stage.stats["dropped_chunks"] / stage.stats["chunks"],
        dropped_text_share=stage.stats["dropped_text_share"],
        truncated_text_share=stage.stats["truncated_text_share"],
    )


def provenance(
    device: str,
    precision: str,
    threads: int,
    places: Sequence[tuple[str, str]],
    trained: "Pretraining",
    commit: str | None,
) -> results.Provenance:
    """The place, time, software and hardware of a run.

    Args:
        places: the host and the name of the device of each process.
        commit: of the code at the time of its import.
    """
    packages = ("torch", "numpy", "sentencepiece", "sentencex", "hydra-core")
    return results.Provenance(
        albert_lab=__version__,
        commit=commit,
        python=platform.python_version(),
        packages={package: version(package) for package in packages},
        platform=f"{platform.system()} {platform.machine()}",
        processor=cpu_model(),
        cores=cores(),
        threads=threads,
        device=device,
        precision=precision,
        finished=datetime.now(UTC).date().isoformat(),
        processes=len(places),
        devices=tuple(name for _, name in places),
        nodes=len({host for host, _ in places}),
        processes_from_step=dict(trained.processes),
        micro_batch_size=trained.micro_batch_size,
        jobs=int(jobs) if (jobs := os.environ.get("ALBERT_LAB_JOBS")) else None,
    )
