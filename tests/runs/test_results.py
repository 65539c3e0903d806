import json

import pytest
from records import toy_record

from albert_lab.errors import ConfigError
from albert_lab.runs import reported, results, tables


def test_a_record_is_read_back_as_written(tmp_path):
    record = toy_record()
    results.write(tmp_path, record)
    assert results.read(tmp_path) == record


def test_a_record_without_timed_inference_can_be_read(tmp_path):
    record = toy_record()
    content = json.loads(record.model_dump_json())
    del content["training"]["inference_tokens_per_second"]
    (tmp_path / results.RECORD).write_text(json.dumps(content))
    found = results.read(tmp_path)
    assert found is not None
    assert found.training.inference_tokens_per_second is None
    assert tables.of_record(found) == tables.of_record(record) | {"inference_tokens_per_second": None}


def test_a_record_without_a_commit_can_be_read_and_adds_no_column(tmp_path):
    content = json.loads(toy_record().model_dump_json())
    del content["provenance"]["commit"]
    (tmp_path / results.RECORD).write_text(json.dumps(content))
    found = results.read(tmp_path)
    assert found == toy_record()
    assert found is not None
    assert "commit" not in tables.of_record(found)


def test_a_folder_without_a_record_is_not_finished(tmp_path):
    assert results.read(tmp_path) is None


def test_a_record_cut_short_is_named(tmp_path):
    (tmp_path / results.RECORD).write_text('{"name": "a"')
    with pytest.raises(ConfigError, match=r"results\.json: invalid or truncated JSON"):
        results.read(tmp_path)


def test_every_score_carries_its_n_and_interval_into_the_table():
    row = tables.of_record(toy_record(sop=75))
    assert (row["sop_accuracy"], row["sop_accuracy_n"]) == (75, 1000)
    assert row["sop_accuracy_low"] < 75 < row["sop_accuracy_high"]
    assert row["sop_accuracy_by"] == "head"


def test_a_metrics_line_cut_off_by_a_kill_is_left_out(tmp_path):
    (tmp_path / results.METRICS).write_text('{"event": "training", "step": 1}\n{"event": "trai')
    assert results.read_metrics(tmp_path) == [{"event": "training", "step": 1}]


def test_curves_contain_the_evaluations_during_training(tmp_path):
    lines = ['{"event": "training", "step": 1}', '{"event": "evaluation", "step": 2, "mlm_accuracy": 0.5}']
    (tmp_path / results.METRICS).write_text("\n".join(lines))
    assert reported.curve(tmp_path) == ({"step": 2, "mlm_accuracy": 0.5},)
