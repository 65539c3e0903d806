"""Toy records of runs, for tests of what is made of records."""

from functools import cache

from albert_lab.config.compose import load
from albert_lab.config.schema import RunConfig
from albert_lab.runs.results import Data, Provenance, RunRecord, Training
from albert_lab.score import Score


@cache
def _smoke() -> RunConfig:
    return load(["scale=smoke"])


def toy_score(value: float, by: str = "head", *, loss: float, lexical_floor: float | None = None) -> Score:
    interval = {"low": value - 3, "high": value + 3}
    return Score(value=value, n=1000, **interval, floor=50, lexical_floor=lexical_floor, by=by, loss=loss)


def toy_record(
    config: RunConfig | None = None,
    *,
    name: str = "sop_all-shared_seed0",
    mlm: float = 25,
    nsp: float = 50,
    sop: float = 60,
    by: str = "head",
    evaluation_set: str = "set",
    alarms: tuple[str, ...] = (),
) -> RunRecord:
    return RunRecord(
        name=name,
        results_version=1,
        config=config or _smoke(),
        fingerprints={"corpus": "c0ffee", "tokenizer": "bead"},
        evaluation_set=evaluation_set,
        parameters={"total": 31_000, "encoder": 30_000, "with_pooler": 30_500},
        train_flops_per_token=190_000.0,
        scores={
            "mlm_accuracy": toy_score(mlm, loss=5 - mlm / 20),
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
            data_wait_share=0.001,
            peak_memory_bytes=300 * 2**20,
            final_loss=6.125,
        ),
        data=Data(
            mask_rate=0.151,
            padding_share=0.1,
            label_shares={"consecutive": 0.5, "swapped": 0.5},
            cross_document_share=0.0,
            dropped_chunk_share=0.05,
            dropped_text_share=0.04,
            document_start_share=0.5,
            median_document_sequences=1.5,
            epochs=0.5,
            train_documents=200,
            dev_documents=49,
        ),
        alarms=alarms,
        provenance=Provenance(
            albert_lab="0.1.0",
            python="3.11.7",
            packages={"torch": "2.13.0", "numpy": "2.4.6"},
            platform="Linux",
            processor="toy",
            cores=2,
            threads=2,
            device="cpu",
            precision="bf16",
            finished="2026-11-21",
        ),
    )
