import json
import subprocess

import pytest
from records import toy_column, toy_finetuning, toy_record

from albert_lab import score
from albert_lab.config.compose import load
from albert_lab.config.schema import RESULTS_VERSION
from albert_lab.errors import DamagedFileError
from albert_lab.runs import reported, results, worker
from albert_lab.runs.reported import ReportedRun
from albert_lab.runs.run import Run


@pytest.mark.parametrize(
    ("keys", "value"), [(("scores", "mlm_accuracy", "n"), 10**40), (("training", "steps"), -5)]
)
def test_numbers_that_no_run_can_have_are_refused(tmp_path, keys, value):
    content = part = json.loads(toy_record().model_dump_json())
    for key in keys[:-1]:
        part = part[key]
    part[keys[-1]] = value
    (tmp_path / results.RECORD).write_text(json.dumps(content))
    with pytest.raises(DamagedFileError, match=keys[0]):
        results.read(tmp_path)


@pytest.mark.parametrize(
    ("keys", "value"),
    [
        (("name",), "another"),
        (("evaluation_set",), "another"),
        (("config", "seed"), 7),
        (("config", "dropout"), 0.3),
        (("fingerprints", "corpus"), "another"),
    ],
)
def test_a_record_is_refused_if_its_name_is_not_that_of_its_content(tmp_path, keys, value):
    base = toy_record()
    run = Run(base.config, base.fingerprints)
    of_now = {
        "name": run.name,
        "results_version": RESULTS_VERSION,
        "evaluation_set": run.evaluation_set,
    }
    record = base.model_copy(update=of_now)
    results.write(tmp_path, record)
    assert results.read(tmp_path, run.name)
    with pytest.raises(DamagedFileError, match=run.name):
        results.read(tmp_path, "another-run")
    content = part = json.loads(record.model_dump_json())
    for key in keys[:-1]:
        part = part[key]
    assert keys[-1] in part
    part[keys[-1]] = value
    (tmp_path / results.RECORD).write_text(json.dumps(content))
    with pytest.raises(DamagedFileError, match="changed by hand"):
        results.read(tmp_path)


@pytest.mark.parametrize(
    ("before", "after"), [('"value": 60.0', '"value": 66.0'), ('"steps": 12', '"steps": 13')]
)
def test_scores_that_were_changed_by_hand_are_refused_in_a_run_and_in_a_report(
    tmp_path, before, after
):
    # a report has fewer digits
    sums = score.Documents.model_validate({"n": (7, 9), "sum": (2.5, 12345678901.6)})
    record = toy_record().model_copy(update={"documents": {"sop_accuracy": sums}})
    results.write(tmp_path, record)
    signed = results.read(tmp_path, record.name)
    assert signed is not None
    reported.write(tmp_path, ReportedRun(record=signed))
    files = {
        tmp_path / results.RECORD: lambda: results.read(tmp_path),
        reported.file_of(tmp_path, record.name): lambda: reported.read(tmp_path, record.name),
    }
    for file, read in files.items():
        assert read()
        text = file.read_text()
        assert before in text
        file.write_text(text.replace(before, after))
        with pytest.raises(DamagedFileError, match=f"{file.name}.*changed by hand"):
            read()


@pytest.mark.parametrize(
    ("before", "after"), [("71.5", "75.5"), ('"mlm_accuracy": 30.25', '"mlm_accuracy": 32.25')]
)
def test_fine_tunings_and_curves_that_were_changed_by_hand_are_refused_in_a_report(
    tmp_path, before, after
):
    record = toy_record()
    column = toy_column(toy_finetuning(record.name, "mrpc", 71.5).signed())
    point = {"step": 6, "training_seconds": 1.0, "share": 0.5, "tokens": 9, "mlm_accuracy": 30.25}
    reported.write(tmp_path, ReportedRun(record=record, columns=(column,), curve=(point,)))
    assert reported.read(tmp_path, record.name)
    file = reported.file_of(tmp_path, record.name)
    assert before in file.read_text()
    file.write_text(file.read_text().replace(before, after))
    with pytest.raises(DamagedFileError, match=f"{file.name}.*changed by hand"):
        reported.read(tmp_path, record.name)


def test_a_log_whose_evaluation_lacks_a_number_is_named(tmp_path):
    for line in (
        {"event": "evaluation", "step": 1},
        {"event": "evaluation", "step": 1, "training_seconds": "x"},
    ):
        (tmp_path / results.METRICS).write_text(json.dumps(line) + "\n")
        with pytest.raises(DamagedFileError, match="training_seconds"):
            reported.curve(tmp_path)


def test_a_report_has_no_folder_of_the_machine_where_a_tokenizer_was(tmp_path):
    config = load(
        ["scale=smoke", "tokenizer=model-file", f"tokenizer.model_file={tmp_path}/a.json"]
    )
    run = ReportedRun(record=toy_record(config))
    reported.write(tmp_path, run)
    assert str(tmp_path) not in reported.file_of(tmp_path, run.name).read_text()


def test_curves_are_the_evaluations_of_a_log_without_a_line_that_a_kill_cut_off(tmp_path):
    point = {"step": 2, "training_seconds": 1.5, "mlm_accuracy": 0.5}
    lines = ['{"event": "training", "step": 1}', json.dumps({"event": "evaluation"} | point)]
    (tmp_path / results.METRICS).write_text("\n".join([*lines, '{"event": "trai']))
    assert results.read_metrics(tmp_path)[0] == {"event": "training", "step": 1}
    assert reported.curve(tmp_path) == (point,)


def test_passes_are_those_over_all_text_not_over_the_pairs_that_a_stage_keeps():
    data = toy_record().data
    assert data.passes == pytest.approx(data.epochs * (1 - data.dropped_text_share))
    first = {"max_sequence_length": 16, "epochs": 20, "dropped_text_share": 0.95}
    second = {"max_sequence_length": 64, "epochs": 3, "dropped_text_share": 0.3}
    stages = (
        results.Stage.model_validate(first | {"truncated_text_share": 0.03}),
        results.Stage.model_validate(second | {"truncated_text_share": 0.2}),
    )
    assert data.model_copy(update={"stages": stages}).passes == pytest.approx(20 * 0.02 + 3 * 0.5)


def test_a_checkout_has_its_commit_which_is_marked_if_it_has_changed(tmp_path):
    def git(*words):
        who = [
            "-c",
            "user.name=toy",
            "-c",
            "user.email=toy@example.org",
            "-c",
            "commit.gpgsign=false",
        ]
        return subprocess.run(
            ["git", "-C", tmp_path, *who, *words], capture_output=True, text=True, check=True
        ).stdout

    assert worker.commit_of(tmp_path) is None
    git("init", "-q")
    (tmp_path / "a.yaml").touch()
    git("add", "a.yaml")
    git("commit", "-q", "-m", "toy")
    (tmp_path / "notes.md").touch()
    assert worker.commit_of(tmp_path) == git("rev-parse", "HEAD").strip()
    (tmp_path / "a.yaml").write_text("a: 1")
    assert worker.commit_of(tmp_path) == git("rev-parse", "HEAD").strip() + "-dirty"
