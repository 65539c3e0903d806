"""Damaged files are either read or refused by an error that names the file; nothing else
happens.
"""

import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from damage import as_json, damaged, edited, is_read_or_named, lines
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from parity import BERT, make_bert
from records import toy_finetuning, toy_record
from toy_folders import toy_run, toy_tokenizer_file
from toy_reports import toy_report

from albert_lab import files, paths
from albert_lab.analysis import analysis
from albert_lab.cli.housekeeping import as_text, row_of
from albert_lab.data.shards import SPLITS, open_shards, read_meta
from albert_lab.interop import layout, loading
from albert_lab.report import markdown, report
from albert_lab.runs import from_weights, reported, results
from albert_lab.runs import run as runs
from albert_lab.studies import experiment
from albert_lab.studies import study as studies
from albert_lab.tasks import records
from albert_lab.tasks.task import load_task

CHECKS = [HealthCheck.too_slow, HealthCheck.function_scoped_fixture, HealthCheck.data_too_large]


def examples(number: int) -> settings:
    return settings(max_examples=number, suppress_health_check=CHECKS)


def accidents(content: Any) -> st.SearchStrategy[bytes]:
    """The content of a file after an accident: of bytes, or of values where the content is plain
    data.
    """
    if isinstance(content, bytes):
        return damaged(content)
    return st.one_of(damaged(as_json(content)), edited(content).map(as_json))


@contextmanager
def holding(file: Path, content: bytes) -> Iterator[None]:
    """A context in which a file has other content."""
    before = file.read_bytes() if file.exists() else None
    file.write_bytes(content)
    try:
        yield
    finally:
        file.write_bytes(before) if before is not None else file.unlink()


# Files of a run


@pytest.fixture(scope="module")
def run_folder(isolated_home, tmp_path_factory) -> Path:
    return toy_run(toy_tokenizer_file(tmp_path_factory.mktemp("tokenizer")), BERT)


STEPS = [{"event": "training", "step": step, "share": step / 9, "loss": 5.0} for step in range(9)]
LAYERS = [
    {"corpus": "files", "layer": layer, "token": "mean", "n": 9}
    | dict.fromkeys(("l2_distance", "cosine_similarity", "degrees"), 0.5)
    for layer in range(3)
]
# Of a run: the content of each file, and what reads it; None stands for the file that the folder
# has.
OF_A_RUN: dict[str, tuple[Any, Callable[[Path], object]]] = {
    results.RECORD: (json.loads(toy_record().model_dump_json()), results.read),
    results.METRICS: (lines(*STEPS), reported.curve),
    results.LAYERS: (LAYERS, lambda folder: from_weights.layers_of(folder, print)),
    runs.RUN_FILE: (None, runs.read),
    runs.FAILURE: (b"the loss is nan\n", lambda folder: runs.failure_in(folder / runs.FAILURE)),
    runs.MACHINE: (
        {"threads": 2, "processes": 1, "jobs": 1},
        lambda folder: runs.use_threads(folder, runs.read(folder).config),
    ),
    runs.IMPORT: ({"missing_parts": ["pooler"], "source": "x"}, runs.read_import),
}


@examples(25)
@given(data=st.data(), name=st.sampled_from(sorted(OF_A_RUN)))
def test_a_damaged_file_of_a_run_is_named_and_other_commands_continue(
    run_folder, monkeypatch, data, name
):
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    content, read = OF_A_RUN[name]
    file = run_folder / name
    with holding(file, data.draw(accidents(files.read_yaml(file) if content is None else content))):
        assert is_read_or_named(name, lambda: read(run_folder))
        assert as_text([row_of(run_folder)])


# Other files that stand alone


SPLIT = {"tokens": 3, "sentences": 2, "documents": 1, "sources": 1}
META = {
    "model_fingerprint": "abc",
    "vocab_size": 56,
    "train": SPLIT,
    "dev": SPLIT,
}


def read_shards(file: Path) -> None:
    for split in SPLITS:
        (file.parent / f"{split}.tokens").write_bytes(np.array([7, 8, 9], "<u2").tobytes())
        for part, offsets in (("sentences", [0, 2, 3]), ("documents", [0, 2]), ("sources", [0, 1])):
            (file.parent / f"{split}.{part}").write_bytes(np.array(offsets, "<i8").tobytes())
    read_meta(file.parent)
    for split in SPLITS:
        open_shards(file.parent, split)


ALONE: dict[str, tuple[Any, Callable[[Path], object]]] = {
    "mine.yaml": (
        files.read_yaml(paths.CONF / "task" / "mnli.yaml"),
        lambda file: load_task(str(file)),
    ),
    "meta.json": (META, read_shards),
    loading.TOKENIZER_CONFIG: (
        {"do_lower_case": True, "keep_accents": False, "model_max_length": 512},
        lambda file: loading.read_tokenizer_settings(file.parent),
    ),
    records.record_file(Path(), "sst2", 0).name: (
        json.loads(toy_finetuning("x", "sst2", 70.0).model_dump_json()),
        lambda file: records.read_record(file.parent.parent, "sst2", 0),
    ),
    "study.yaml": (files.read_yaml(paths.EXPERIMENTS / "sharing.yaml"), experiment.read),
    "text.yaml": ((paths.EXPERIMENTS / "sop-vs-nsp.yaml").read_bytes(), experiment.read),
}


@examples(40)
@given(data=st.data(), name=st.sampled_from(sorted(ALONE)))
def test_a_damaged_file_is_read_or_named(tmp_path_factory, data, name):
    content, read = ALONE[name]
    folder = tmp_path_factory.mktemp("damaged")
    file = records.record_file(folder, "sst2", 0).parent / name
    file.parent.mkdir()
    file.write_bytes(data.draw(accidents(content)))
    assert is_read_or_named(file.parent.name if name == "meta.json" else name, lambda: read(file))
    shutil.rmtree(folder)


# Reports


@pytest.fixture(scope="module")
def reports(tmp_path_factory) -> list[Path]:
    """A report with layers, and one with fine-tunings."""
    folder = tmp_path_factory.mktemp("reports")
    return [
        toy_report(folder / name, experiment.named(name), full=True)
        for name in ("layer-similarity", "sop-vs-nsp")
    ]


@examples(12)
@given(data=st.data(), place=st.sampled_from([0, 1]), is_study=st.booleans())
def test_a_damaged_record_of_a_report_is_named(reports, data, place, is_study):
    folder = reports[place]
    run = studies.read(folder).runs[0].name
    file = folder / studies.STUDY if is_study else reported.file_of(folder, run)

    def read() -> None:
        result = analysis.read(folder)
        report.as_json(folder.name, result)
        markdown.render(result, None)

    with holding(file, data.draw(accidents(json.loads(file.read_bytes())))):
        assert is_read_or_named(folder.name, read)


# Folders of transformers


@pytest.fixture(scope="module")
def published(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("published")
    make_bert(BERT).save_pretrained(folder)
    return folder


@examples(25)
@given(data=st.data(), name=st.sampled_from(["config.json", "model.safetensors"]))
def test_a_folder_of_transformers_is_read_or_its_file_named(published, data, name):
    content = (published / name).read_bytes()
    with holding(
        published / name,
        data.draw(accidents(json.loads(content) if name == "config.json" else content)),
    ):
        assert is_read_or_named(published.name, lambda: layout.read(published))
