"""Damaged data of a task, predictions and records are either read or refused by an error that names the file."""

import json
import shutil
from pathlib import Path

import pytest
from damage import as_json, damaged, edited, is_read_or_named, lines
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from toy_tasks import toy_task

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
    assert is_read_or_named(place.name, lambda: task.read(folder, "dev"))
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
    assert is_read_or_named("dev.jsonl", lambda: task.read(folder, "dev"))
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
    assert is_read_or_named(file.name, lambda: score(load_task(name), file, toy_data, lambda _line: None))
    shutil.rmtree(file.parent)
