"""Damaged data of a task is either read or refused by an error that names the file."""

import json
import shutil

from damage import as_json, damaged, edited, is_read_or_named, lines
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from toy_tasks import toy_task

from albert_lab.tasks.task import load_task

CHECKS = [HealthCheck.too_slow, HealthCheck.function_scoped_fixture]
EXAMPLES = settings(max_examples=25, suppress_health_check=CHECKS)

OWN_TASK = """
kind: {kind}
data: {{train: train.jsonl, dev: dev.jsonl}}
format: {{{columns}, labels: ["0", "1"]}}
"""
OWN_ROWS = {
    "classification": ("text_a: text, label: label", {"text": "good", "label": "1"}),
    "multiple_choice": (
        "passage: text, options: [a, b], label: label",
        {"text": "x", "a": "y", "b": "z", "label": 1},
    ),
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
    file.write_bytes(
        data.draw(edited(json.loads(before)).map(as_json) if is_json else damaged(before))
    )
    assert is_read_or_named(place.name, lambda: task.read(folder, "dev"))
    shutil.rmtree(folder)


@EXAMPLES
@given(data=st.data(), kind=st.sampled_from(sorted(OWN_ROWS)), by_bytes=st.booleans())
def test_json_lines_of_an_own_task_are_read_or_named(tmp_path_factory, data, kind, by_bytes):
    folder = tmp_path_factory.mktemp("own")
    columns, row = OWN_ROWS[kind]
    (folder / "own.yaml").write_text(OWN_TASK.format(kind=kind, columns=columns))
    content = (
        damaged(lines(row, row, row))
        if by_bytes
        else edited(row).map(lambda changed: lines(row, changed))
    )
    (folder / "dev.jsonl").write_bytes(data.draw(content))
    task = load_task(str(folder / "own.yaml"))
    assert is_read_or_named("dev.jsonl", lambda: task.read(folder, "dev"))
    shutil.rmtree(folder)
