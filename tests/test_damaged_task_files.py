"""Damaged data of a task, predictions and records are either read or refused by an error that names the file."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from damage import as_json, damaged, edited
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from records import toy_finetuning
from toy_tasks import toy_task

from albert_lab.errors import FIXABLE
from albert_lab.tasks import records
from albert_lab.tasks.score import score
from albert_lab.tasks.task import load_task

CHECKS = [HealthCheck.too_slow, HealthCheck.function_scoped_fixture]
EXAMPLES = settings(max_examples=40, suppress_health_check=CHECKS)

OWN_TASK = """
kind: {kind}
data: {{train: train.jsonl, dev: dev.jsonl}}
format: {{{columns}, labels: ["0", "1"]}}
"""
OWN_ROWS = {
    "classification": ("text_a: text, label: label", {"text": "good", "label": "1"}),
    "multiple_choice": ("passage: text, options: [a, b], label: label", {"text": "x", "a": "y", "b": "z", "label": 1}),
}


def lines(*rows: dict) -> bytes:
    return b"".join(as_json(row) + b"\n" for row in rows)


def refused_at_most(name: str, read: Callable[[], object]) -> None:
    """Reading succeeds, or raises one of our errors with the name of the file."""
    said = name
    try:
        read()
    except FIXABLE as error:
        said = str(error)
    assert name in said
    assert "pydantic" not in said


@EXAMPLES
@given(data=st.data(), name=st.sampled_from(["sst2", "stsb", "mnli", "squad2", "race"]))
def test_the_data_of_a_task_is_read_or_named(tmp_path_factory, data, name):
    folder = tmp_path_factory.mktemp("data")
    task = toy_task(name, folder)
    place = task.file(folder, "dev")
    file = next(place.rglob("*.txt")) if place.is_dir() else place
    before = file.read_bytes()
    is_json = name in ("squad2", "race") and data.draw(st.booleans())
    file.write_bytes(data.draw(edited(json.loads(before)).map(as_json) if is_json else damaged(before)))
    refused_at_most(place.name, lambda: task.read(folder, "dev"))
    shutil.rmtree(folder)


@EXAMPLES
@given(data=st.data(), kind=st.sampled_from(sorted(OWN_ROWS)), by_bytes=st.booleans())
def test_json_lines_of_an_own_task_are_read_or_named(tmp_path_factory, data, kind, by_bytes):
    folder = tmp_path_factory.mktemp("own")
    columns, row = OWN_ROWS[kind]
    (folder / "own.yaml").write_text(OWN_TASK.format(kind=kind, columns=columns))
    content = damaged(lines(row, row, row)) if by_bytes else edited(row).map(lambda changed: lines(row, changed))
    (folder / "dev.jsonl").write_bytes(data.draw(content))
    task = load_task(str(folder / "own.yaml"))
    refused_at_most("dev.jsonl", lambda: task.read(folder, "dev"))
    shutil.rmtree(folder)


PREDICTIONS = {
    "sst2": b"index\tprediction\n" + b"".join(b"%d\t1\n" % number for number in range(16)),
    "squad2": as_json({f"q{number}": "mat" for number in range(12)}),
    "race": as_json({f"high/{number}.txt/0": "A" for number in range(12)}),
}


@pytest.fixture(scope="module")
def toy_data(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("toy")
    for name in PREDICTIONS:
        toy_task(name, folder)
    return folder


@EXAMPLES
@given(data=st.data(), name=st.sampled_from(sorted(PREDICTIONS)), by_bytes=st.booleans())
def test_predictions_are_scored_or_named(tmp_path_factory, toy_data, data, name, by_bytes):
    before = PREDICTIONS[name]
    file = tmp_path_factory.mktemp("predictions") / "mine.json"
    is_edited = not by_bytes and name != "sst2"
    file.write_bytes(data.draw(edited(json.loads(before)).map(as_json) if is_edited else damaged(before)))
    refused_at_most(file.name, lambda: score(load_task(name), file, toy_data, lambda _line: None))
    shutil.rmtree(file.parent)


@EXAMPLES
@given(data=st.data(), by_bytes=st.booleans())
def test_the_record_of_a_fine_tuning_is_read_or_named(tmp_path_factory, data, by_bytes):
    folder = tmp_path_factory.mktemp("run")
    records.record_file(folder, "sst2", 0).parent.mkdir()
    records.write_record(folder, toy_finetuning("x", "sst2", 70.0))
    file = records.record_file(folder, "sst2", 0)
    before = file.read_bytes()
    file.write_bytes(data.draw(damaged(before) if by_bytes else edited(json.loads(before)).map(as_json)))
    refused_at_most(file.name, lambda: records.read_record(folder, "sst2", 0))
    shutil.rmtree(folder)
