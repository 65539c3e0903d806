from pathlib import Path

import pandas as pd
import pytest
from golden import assert_golden
from records import toy_record
from toy_reports import compose_figure, toy_report

from albert_lab.errors import ConfigError
from albert_lab.figures import drawing
from albert_lab.report import finetuning, report
from albert_lab.runs import results
from albert_lab.studies import experiment
from albert_lab.studies.table import Row, axis_labels

GOLDEN = Path(__file__).with_name("golden_report.md")


@pytest.fixture(autouse=True)
def composed(monkeypatch):
    monkeypatch.setattr(drawing, "write", compose_figure)


def toy_points(seeds=(0, 1), losses=("none", "nsp", "sop"), missing=()) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "inter_sentence": loss,
            "paper_inter_sentence": loss,
            "seed": seed,
            "run": f"{loss}-{seed}",
            "state": "failed" if f"{loss}-{seed}" in missing else "done",
            "reason": "the loss is nan at step 3" if f"{loss}-{seed}" in missing else "",
            "scale": "smoke",
            "corpus": "sotu",
            "command": "albert-lab sop-vs-nsp scale=smoke",
            "failed_tasks": "race, seed 0: the loss is nan at step 2" if f"{loss}-{seed}" == "sop-0" else "",
        }
        for loss in losses
        for seed in seeds
    )


def toy_results(points: pd.DataFrame) -> pd.DataFrame:
    scores = {"none": (30, 51, 50), "nsp": (29, 80, 51), "sop": (28, 55, 70)}
    rows = []
    for point in points.to_dict("records"):
        if point["state"] == "done":
            mlm, nsp, sop = (value + 2.0 * point["seed"] for value in scores[point["inter_sentence"]])
            by = "linear probe" if point["inter_sentence"] == "none" else "head"
            alarms = ("sop_accuracy is not above chance",) if point["run"] == "sop-1" else ()
            record = toy_record(name=point["run"], mlm=mlm, nsp=nsp, sop=sop, by=by, alarms=alarms)
            tasks = {"sst2": sop, "sst2_n": 200, "sst2_low": sop - 7, "sst2_high": sop + 7}
            tasks |= {"sst2_floor": 50.9, "cloze-span": 10.0, "cloze-span_f1": 15.0, "cloze-span_exact_match": 5.0}
            rows.append(results.as_row(record) | tasks)
    return pd.DataFrame(rows)


def toy_tunings(points: pd.DataFrame) -> pd.DataFrame:
    """Fine-tunings of every finished run: the official SST-2, and a task of the corpus in the place of SQuAD1.1."""
    shared = {"seed": 0, "best_step": 4, "dev_available": 900, "train_used": 64, "train_available": 64, "steps": 6}
    shared |= {"batch_size": 8, "learning_rate": 0.001, "max_sequence_length": 32, "attempts": 1, "diverged": ""}
    shared |= {"issues": "", "training_seconds": 1.0, "total_seconds": 2.0, "examples_per_second": 50.0, "n": 200}
    sentiment = {"column": "sst2", "task": "sst2", "title": "SST-2", "metric": "accuracy", "note": ""}
    sentiment |= {"official": '{"train": 67349, "dev": 872}', "counts": '{"train": {"cut": 3}, "dev": {}}'}
    cloze = {"column": "squad1", "task": "cloze-span", "title": "Cloze span", "metric": "f1 and exact_match"}
    cloze |= {"note": "resembles masked language modelling", "official": "{}", "counts": "{}"}
    scores = {"best": 61.5, "last": 60.0, "baseline": 50.9, "padding_share": 0.1, "threshold_from": "", "scores": "{}"}
    return pd.DataFrame(
        {"run": run} | task | shared | scores
        for run in points[points["state"] == "done"]["run"]
        for task in (sentiment, cloze)
    )


def written(folder: Path, points: pd.DataFrame, name: str = "sop-vs-nsp") -> str:
    curves = pd.DataFrame({"run": ["sop-0"], "step": [6], "mlm_accuracy": [10.0]})
    return report.write(
        folder / name, experiment.named(name), points, toy_results(points), curves, toy_tunings(points)
    ).read_text()


def test_a_report_with_tasks_of_the_corpus_is_the_golden_one(tmp_path):
    assert_golden(written(tmp_path, toy_points(missing=("nsp-1",))), GOLDEN)


def test_a_report_is_rebuilt_from_its_csv_files_alone_to_the_byte(tmp_path):
    written(tmp_path, toy_points())
    forms = [tmp_path / "sop-vs-nsp" / name for name in (report.REPORT, report.PAGE)]
    before = [file.read_bytes() for file in forms]
    for file in forms:
        file.unlink()
    report.rebuild(tmp_path / "sop-vs-nsp")
    assert [file.read_bytes() for file in forms] == before


def test_the_row_called_none_is_no_missing_value(tmp_path):
    assert "\n| none " in written(tmp_path, toy_points())


def test_a_mean_comes_with_its_spread_over_seeds(tmp_path):
    # Seeds at 70 and 72: mean 71.0, standard deviation 2 / sqrt(2) = 1.4.
    assert "71.0 ± 1.4" in written(tmp_path, toy_points())


def test_a_single_seed_shows_the_interval_of_its_answers(tmp_path):
    assert "70.0 [67.0, 73.0]" in written(tmp_path, toy_points(seeds=(0,)))


def test_a_failed_run_is_no_row_and_is_named_with_its_reason(tmp_path):
    text = written(tmp_path, toy_points(seeds=(0,), missing=("nsp-0",)))
    row = next(line for line in text.splitlines() if line.startswith("| nsp "))
    assert row.count("—") == 3
    assert "`nsp-0`: the loss is nan at step 3" in text


def test_rows_scored_on_different_sets_are_refused(tmp_path):
    points = toy_points(seeds=(0,))
    table = toy_results(points)
    table.loc[1, "evaluation_set"] = "another"
    with pytest.raises(ConfigError, match="different held-out sets"):
        report.write(tmp_path, experiment.named("sop-vs-nsp"), points, table, pd.DataFrame(), pd.DataFrame())


def test_a_value_that_stands_for_the_papers_shows_both(tmp_path):
    points = toy_points(seeds=(0,), losses=("sop",)).drop(columns=["inter_sentence", "paper_inter_sentence"])
    points = points.assign(sharing="all-shared", paper_sharing="all-shared", embedding_size=12, paper_embedding_size=64)
    table = pd.DataFrame([results.as_row(toy_record(name="sop-0"))])
    text = report.write(
        tmp_path, experiment.named("embedding-size"), points, table, pd.DataFrame(), pd.DataFrame()
    ).read_text()
    assert "12 (paper: 64)" in text


def test_the_paper_is_named_only_for_what_it_prints():
    axes = ["sharing", "embedding_size"]
    values = {"sharing": "groups", "embedding_size": "16"}
    beyond = Row({"sharing": "2-groups", "embedding_size": "128"}, values, [], {})
    assert axis_labels(experiment.named("sharing"), beyond, axes) == ["2-groups", "16 (paper: 128)"]
    figure = Row({"model": "BERT-large"}, {"model": "medium"}, [], {})
    assert axis_labels(experiment.named("layer-similarity"), figure, ["model"]) == ["medium (paper: BERT-large)"]
    own = experiment.Experiment.model_validate(
        {"name": "own", "title": "Own", "source": "none", "grid": {"model": {"BERT-large": "medium"}}}
    )
    assert axis_labels(own, figure, ["model"]) == ["BERT-large"]


def test_a_share_of_short_chunks_other_than_the_released_one_is_told_in_a_note(tmp_path):
    points = toy_points(seeds=(0,))
    assert "a shorter length" not in written(tmp_path, points)
    table = toy_results(points).assign(short_sequence_probability=0.5, dropped_text_share=0.25)
    text = report.write(
        tmp_path, experiment.named("sop-vs-nsp"), points, table, pd.DataFrame(), pd.DataFrame()
    ).read_text()
    assert "Of the documents, 50.0 % are cut into chunks of a shorter length" in text
    assert "with 25.0 % of the text" in text


def test_a_folder_that_is_no_report_is_refused(tmp_path):
    with pytest.raises(ConfigError, match=r"experiment\.yaml"):
        report.rebuild(tmp_path)


def test_a_task_of_the_corpus_stands_under_its_own_name_and_without_the_papers_score(tmp_path):
    text = written(tmp_path, toy_points(seeds=(0,)))
    header = next(line for line in text.splitlines() if "Cloze span %" in line)
    assert "paper SST-2" in header
    assert "SQuAD" not in header
    assert " 15.0/5.0 |" in text
    assert "Cloze span stands where the paper has SQuAD1.1" in text
    assert "its files hold 64 training and 900 dev examples, the official ones 67,349 and 872" in text


@pytest.mark.parametrize(("seeds", "heading"), [((0,), "seed"), ((0, 1), "seeds")])
def test_one_fine_tuning_seed_is_no_number_of_seeds(seeds, heading):
    once = toy_tunings(toy_points(seeds=(0,)))
    text = finetuning.sections(pd.concat([once.assign(seed=seed) for seed in seeds]))[-1]
    header = [cell.strip() for cell in text.splitlines()[0].split("|")[1:-1]]
    assert (header[2], header[-1]) == (heading, "remarks")


def test_a_fine_tuning_that_failed_is_named_with_its_reason(tmp_path):
    assert "`sop-0`: race, seed 0: the loss is nan at step 2" in written(tmp_path, toy_points(seeds=(0,)))


def test_rows_that_are_compared_have_a_speed_up_of_training_and_one_of_inference(tmp_path):
    folder = toy_report(tmp_path / "model-sizes", experiment.named("model-sizes"), seeds=1)
    table = report.render(*report.read(folder), "").split("## Cost")[1].split("##")[0]
    header, _, first, second, *_ = [line.split("|")[1:-1] for line in table.splitlines() if line.startswith("|")]
    assert [cell.strip() for cell in header[-3:]] == ["speed-up", "paper speed-up", "inference speed-up"]
    # 3,000 tokens/s in training over 3,500 of BERT-large; all infer 9,000.
    assert [cell.strip() for cell in first[-3:]] == ["0.9x", "4.7x", "1.0x"]
    assert [cell.strip() for cell in second[-3:]] == ["1.0x", "1.0", "1.0x"]
