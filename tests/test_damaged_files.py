"""Damaged files are either read or refused by an error that names the file; nothing else happens."""

import io
import json
import shutil
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from damage import as_json, damaged, edited
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from parity import BERT, make_bert
from records import toy_record
from toy import toy_config, write_corpus
from toy_folders import toy_run, toy_tokenizer_file
from toy_reports import toy_report

from albert_lab import files, paths
from albert_lab.data.fingerprint import remembered_fingerprints
from albert_lab.data.shards import SPLITS, open_shards, read_meta
from albert_lab.errors import FIXABLE, DamagedFileError
from albert_lab.interop import folder as folders
from albert_lab.interop import loading, tokenizer_files
from albert_lab.report import report
from albert_lab.runs import ancestry, cleaning, finetunings, job, layers, reported, results, states, status
from albert_lab.runs import run as runs
from albert_lab.runs.reported import ReportedRun
from albert_lab.studies import experiment, recorded
from albert_lab.studies import study as studies
from albert_lab.tasks.predictions import load_scores
from albert_lab.tasks.task import load_task
from albert_lab.training import checkpoint

CHECKS = [HealthCheck.too_slow, HealthCheck.function_scoped_fixture, HealthCheck.data_too_large]
EXAMPLES = settings(max_examples=25, suppress_health_check=CHECKS)
FEWER = settings(max_examples=10, suppress_health_check=CHECKS)


@contextmanager
def refused_at_most(name: str):
    """The body succeeds, or raises one of our errors with the name of the file, in one line."""
    said = name
    try:
        yield
    except FIXABLE as error:
        said = str(error)
    assert name in said
    assert "pydantic" not in said


@pytest.fixture(scope="module")
def run_folder(isolated_home, tmp_path_factory) -> Path:
    return toy_run(toy_tokenizer_file(tmp_path_factory.mktemp("tokenizer")), BERT)


def read_everything(folder: Path) -> None:
    """The files of a run folder that commands read."""
    results.read(folder)
    reported.curve(folder)
    runs.read(folder)


RUN_FILES = {
    results.RECORD: lambda: json.loads(toy_record().model_dump_json()),
    runs.FAILURE: lambda: {"error": "the loss is nan", "fixable": False},
    runs.MACHINE: lambda: {"threads": 2},
    runs.IMPORT: lambda: {"missing_parts": ["pooler"], "source": "x"},
    job.FILE: lambda: {"job": "4711", "words": ["sst2"], "preparation": None},
}
READERS = {
    results.RECORD: lambda folder: (results.check(folder), results.read(folder)),
    runs.FAILURE: states.failure,
    runs.MACHINE: lambda folder: runs.use_threads(folder, runs.read(folder).config),
    runs.IMPORT: loading.read_import,
    job.FILE: job.read,
}


@EXAMPLES
@given(data=st.data(), name=st.sampled_from(sorted(RUN_FILES)), by_bytes=st.booleans())
def test_a_damaged_json_file_of_a_run_is_named_and_status_continues(run_folder, monkeypatch, data, name, by_bytes):
    content = RUN_FILES[name]()
    file = run_folder / name
    before = file.read_bytes() if file.exists() else None
    file.write_bytes(data.draw(damaged(as_json(content)) if by_bytes else edited(content).map(as_json)))
    try:
        monkeypatch.setenv("OMP_NUM_THREADS", "1")
        with refused_at_most(name):
            READERS[name](run_folder)
        assert status.text(status.rows(run_folder.parent))
        cleaning.garbage(cache=True, checkpoints=True)
    finally:
        file.write_bytes(before) if before is not None else file.unlink()


@EXAMPLES
@given(data=st.data(), by_bytes=st.booleans())
def test_a_damaged_run_file_is_named_and_the_other_runs_are_listed(run_folder, data, by_bytes):
    file = run_folder / runs.RUN_FILE
    before = file.read_bytes()
    content = files.read_yaml(file)
    file.write_bytes(data.draw(damaged(before) if by_bytes else edited(content).map(as_json)))
    try:
        with refused_at_most(runs.RUN_FILE):
            runs.read(run_folder)
        ancestry.parents(run_folder.parent)
        assert status.text(status.rows(run_folder.parent))
    finally:
        file.write_bytes(before)


@EXAMPLES
@given(data=st.data())
def test_a_damaged_log_is_named_and_status_continues(run_folder, data):
    lines = [{"event": "training", "step": n, "share": n / 9, "loss": 5.0} for n in range(9)]
    file = run_folder / results.METRICS
    file.write_bytes(data.draw(damaged(b"".join(as_json(line) + b"\n" for line in lines))))
    with refused_at_most(results.METRICS):
        reported.curve(run_folder)
    assert status.text(status.rows(run_folder.parent))
    file.unlink()


@EXAMPLES
@given(data=st.data())
def test_the_layers_of_a_run_are_read_or_named(run_folder, data):
    rows = [f"{token},{layer},1.5,0.5,60.0,9" for token in ("cls", "mean") for layer in range(3)]
    content = "\n".join(["token,layer,l2_distance,cosine_similarity,degrees,n", *rows]) + "\n"
    file = run_folder / results.LAYERS
    file.write_bytes(data.draw(damaged(content.encode())))
    try:
        with refused_at_most(results.LAYERS):
            layers.of_run(run_folder, print)
    finally:
        file.unlink()


def test_one_damaged_run_is_named_by_status_and_the_others_are_listed(own_home, tmp_path):
    tokenizer = toy_tokenizer_file(tmp_path / "tokenizer")
    whole, broken = (toy_run(tokenizer, BERT, seed=seed) for seed in (0, 1))
    (broken / results.RECORD).write_text("{")
    rows = {row["run"]: row for row in status.rows(paths.runs())}
    assert rows[whole.name]["state"] == "done"
    assert rows[broken.name]["state"] == "damaged"
    assert "results.json: invalid or truncated JSON" in rows[broken.name]["reason"]


@EXAMPLES
@given(data=st.data())
def test_scores_of_a_fine_tuning_are_read_or_named(tmp_path_factory, data):
    content = io.BytesIO()
    np.savez_compressed(content, ids=np.arange(50), logits=np.ones((50, 3)))
    file = tmp_path_factory.mktemp("scores") / "best.npz"
    file.write_bytes(data.draw(damaged(content.getvalue())))
    with refused_at_most("best.npz"):
        load_scores(file)
    shutil.rmtree(file.parent)


def test_a_truncated_file_of_scores_is_named(tmp_path):
    file = tmp_path / "best.npz"
    np.savez_compressed(file, ids=np.arange(50))
    file.write_bytes(file.read_bytes()[:100])
    with pytest.raises(DamagedFileError, match=r"best\.npz: not an \.npz file"):
        load_scores(file)


@FEWER
@given(data=st.data(), name=st.sampled_from(sorted(file.stem for file in experiment.files())))
def test_an_experiment_file_is_read_or_named(tmp_path_factory, data, name):
    original = paths.EXPERIMENTS / f"{name}.yaml"
    content = files.read_yaml(original)
    file = tmp_path_factory.mktemp("experiments") / "mine.yaml"
    file.write_bytes(data.draw(st.one_of(damaged(original.read_bytes()), edited(content).map(as_json))))
    with refused_at_most("mine.yaml"):
        experiment.read(file)
    shutil.rmtree(file.parent)


@FEWER
@given(data=st.data())
def test_a_task_file_is_read_or_named(tmp_path_factory, data):
    content = files.read_yaml(paths.CONF / "task" / "mnli.yaml")
    file = tmp_path_factory.mktemp("task") / "mine.yaml"
    file.write_bytes(data.draw(edited(content).map(as_json)))
    with refused_at_most("mine.yaml"):
        load_task(str(file))
    shutil.rmtree(file.parent)


META = {
    "model_fingerprint": "abc",
    "vocab_size": 56,
    "disk_bytes": 100,
    "train": {"tokens": 3, "sentences": 2, "documents": 1, "sources": 1},
    "dev": {"tokens": 3, "sentences": 2, "documents": 1, "sources": 1},
}


@EXAMPLES
@given(data=st.data(), by_bytes=st.booleans())
def test_prepared_text_is_read_or_named(tmp_path_factory, data, by_bytes):
    folder = tmp_path_factory.mktemp("shards")
    for split in SPLITS:
        (folder / f"{split}.tokens").write_bytes(np.array([7, 8, 9], "<u2").tobytes())
        for part, offsets in (("sentences", [0, 2, 3]), ("documents", [0, 2]), ("sources", [0, 1])):
            (folder / f"{split}.{part}").write_bytes(np.array(offsets, "<i8").tobytes())
    (folder / "meta.json").write_bytes(data.draw(damaged(as_json(META)) if by_bytes else edited(META).map(as_json)))
    with refused_at_most(folder.name):
        read_meta(folder)
        for split in SPLITS:
            open_shards(folder, split)
    shutil.rmtree(folder)


@EXAMPLES
@given(data=st.data())
def test_a_damaged_cache_of_fingerprints_is_not_an_error(tmp_path_factory, data):
    home = tmp_path_factory.mktemp("home")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ALBERT_LAB_CACHE", str(home))
        (home / "fingerprints.json").write_bytes(data.draw(damaged(as_json({"a|1|2": "c0ffee"}))))
        remembered_fingerprints()
    shutil.rmtree(home)


@pytest.fixture(scope="module")
def whole_report(tmp_path_factory) -> Path:
    return toy_report(tmp_path_factory.mktemp("reports") / "layer-similarity", experiment.named("layer-similarity"))


@pytest.fixture(scope="module")
def tuned_report(tmp_path_factory) -> Path:
    return toy_report(tmp_path_factory.mktemp("reports") / "glue", experiment.named("sop-vs-nsp"), full=True)


@EXAMPLES
@given(data=st.data(), is_study=st.booleans(), is_tuned=st.booleans(), by_bytes=st.booleans())
def test_a_damaged_record_of_a_report_is_named(whole_report, tuned_report, data, is_study, is_tuned, by_bytes):
    folder = tuned_report if is_tuned else whole_report
    run = studies.read(folder).runs[0].name
    file = folder / studies.STUDY if is_study else reported.file_of(folder, run)
    before = file.read_bytes()
    content = damaged(before) if by_bytes else edited(json.loads(before)).map(as_json)
    file.write_bytes(data.draw(content))
    try:
        with refused_at_most(folder.name):
            found = report.read(folder)
            report.as_json(folder.name, found)
            report.render(found, "")
        recorded.read(run, [folder.parent], lambda _line: None)
    finally:
        file.write_bytes(before)


def test_a_damaged_report_does_not_stop_other_sweeps(tmp_path):
    whole = ReportedRun(record=toy_record(name="x"))
    reported.write(tmp_path / "whole", whole)
    (tmp_path / "broken" / "runs").mkdir(parents=True)
    (tmp_path / "broken" / "runs" / "x.json").write_bytes(b'{"record": "x\n\xff')
    said = []
    assert recorded.read("x", [tmp_path], said.append) == (whole,)
    assert len(said) == 1
    assert "broken" in said[0]


@pytest.fixture(scope="module")
def published(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("published")
    make_bert(BERT).save_pretrained(folder)
    return folder


def with_header(content: bytes, header: bytes) -> bytes:
    """A safetensors file with another header: 8 bytes for its length, the header, the numbers."""
    size = int.from_bytes(content[:8], "little")
    return len(header).to_bytes(8, "little") + header + content[8 + size :]


@EXAMPLES
@given(data=st.data())
def test_weights_with_an_edited_header_are_read_or_named(published, data):
    file = published / "model.safetensors"
    before = file.read_bytes()
    header = json.loads(before[8 : 8 + int.from_bytes(before[:8], "little")])
    file.write_bytes(with_header(before, as_json(data.draw(edited(header)))))
    try:
        with refused_at_most(published.name):
            folders.read_model(published)
    finally:
        file.write_bytes(before)


@FEWER
@given(data=st.data())
def test_the_flags_of_a_tokenizer_are_read_or_named(tmp_path_factory, data):
    folder = tmp_path_factory.mktemp("flags")
    content = {"do_lower_case": True, "keep_accents": False, "model_max_length": 512}
    file = folder / tokenizer_files.CONFIG_FILE
    file.write_bytes(data.draw(st.one_of(edited(content).map(as_json), damaged(as_json(content)))))
    with refused_at_most(file.name):
        tokenizer_files.read_flags(folder)
    shutil.rmtree(folder)


@FEWER
@given(data=st.data(), name=st.sampled_from(["config.json", "model.safetensors"]))
def test_a_folder_of_transformers_is_read_or_its_file_named(published, data, name):
    file = published / name
    before = file.read_bytes()
    is_json = name == "config.json"
    content = edited(json.loads(before)).map(as_json) if is_json and data.draw(st.booleans()) else damaged(before)
    file.write_bytes(data.draw(content))
    try:
        with refused_at_most(published.name):
            folders.read_model(published)
    finally:
        file.write_bytes(before)


@FEWER
@given(data=st.data(), name=st.sampled_from([checkpoint.MODEL, checkpoint.STATE, checkpoint.DIGESTS]))
def test_a_damaged_checkpoint_is_never_loaded(run_folder, data, name):
    (step,) = (run_folder / "checkpoint").glob("step-*")
    file = step / name
    before = file.read_bytes()
    after = data.draw(damaged(before))
    file.write_bytes(after)
    try:
        if after.strip() != before.strip():
            with pytest.raises(FIXABLE):
                loading.open_run(run_folder)
    finally:
        file.write_bytes(before)


def test_the_reason_of_a_failed_fine_tuning_is_read_or_named(tmp_path):
    file = tmp_path / f"mnli-seed0.{finetunings.FAILURE}"
    (tmp_path / finetunings.FOLDER).mkdir()
    file = tmp_path / finetunings.FOLDER / file.name
    file.write_text("[]")
    with pytest.raises(DamagedFileError, match=file.name):
        finetunings.forget_failures(tmp_path, fixable_only=True)


def test_a_damaged_tokenizer_in_the_cache_is_named_with_a_remedy(tmp_path, monkeypatch):
    from albert_lab.data.tokenizer.cache import find_or_train

    monkeypatch.setenv("ALBERT_LAB_CACHE", str(tmp_path / "cache"))
    config = toy_config(write_corpus(tmp_path / "text"))
    file = find_or_train(config, print)
    other = toy_tokenizer_file(tmp_path / "other", vocab_size=50)
    shutil.copyfile(other, file)
    with pytest.raises(DamagedFileError, match=rf"is not the trained model.*remove {file.parent}"):
        find_or_train(config, print)
