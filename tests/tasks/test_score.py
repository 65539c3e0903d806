import json
import tarfile

import pytest

from albert_lab.errors import ConfigError, MissingDataError
from albert_lab.tasks.score import evaluate, score
from albert_lab.tasks.task import load_task


@pytest.fixture
def said():
    return []


@pytest.fixture
def score_text(tmp_path, said):
    """A function that scores predictions given as text against data given as text."""

    def run(name, data, predictions, split="dev", **options):
        task = load_task(name)
        files = data if name == "race" else {"": data}
        for inside, content in files.items():
            file = task.file(tmp_path, split) / inside
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(content if isinstance(content, str) else json.dumps(content))
        file = tmp_path / "predictions"
        file.write_text(predictions if isinstance(predictions, str) else json.dumps(predictions))
        return score(task, file, tmp_path, said.append, split=split, **options)

    return run


# GLUE

SST2 = "sentence\tlabel\ngood\t1\nbad\t0\nfine\t1\npoor\t0\n"


def tsv(*predictions):
    return "index\tprediction\n" + "".join(f"{number}\t{label}\n" for number, label in enumerate(predictions))


def test_a_submission_file_is_scored_by_the_metrics_of_the_task(score_text, said):
    assert score_text("sst2", SST2, tsv(1, 0, 0, 0)) == {"accuracy": 75}
    assert not said


def test_numbers_are_correlated(score_text):
    header = "index\tsentence1\tsentence2\tscore\n"
    data = header + "".join(f"{number}\ta\tb\t{label}\n" for number, label in enumerate((1.0, 2.0, 3.0)))
    assert score_text("stsb", data, tsv(0.5, 2.5, 1.5)) == {"pearson": pytest.approx(50), "spearman": pytest.approx(50)}
    assert score_text("stsb", data, tsv(2.5, 2.5, 2.5)) == {"pearson": 0, "spearman": 0}


def test_another_split_is_scored_with_the_data_of_that_split(score_text):
    data = "index\tsentence1\tsentence2\tgold_label\n0\ta\tb\tneutral\n"
    assert score_text("mnli", data, tsv("neutral"), split="dev_mismatched") == {"accuracy": 100}


def test_an_example_without_a_label_may_have_a_prediction_but_is_not_scored(score_text, said):
    data = "index\tsentence1\tsentence2\tgold_label\n0\ta\tb\tneutral\n1\ta\tb\t-\n"
    assert score_text("mnli", data, tsv("neutral", "neutral")) == {"accuracy": 100}
    assert score_text("mnli", data, tsv("neutral")) == {"accuracy": 100}
    assert "gold_label is '-'" in said[0]
    assert "dev_matched.tsv:3" in said[0]


@pytest.mark.parametrize(
    ("predictions", "says"),
    [
        (tsv(1, 0), r"predictions: examples without a prediction: 2 \(2, 3\) of 4"),
        (tsv(*[1] * 9), r"predictions: predictions of examples that are not in the data: 5 \(4, 5, 6, \.\.\.\)"),
        (tsv("positive", 0, 1, 0), r"not one of 0, 1: 1 \(line 2: positive\)"),
        ("0\t1\n", "first line must be"),
    ],
)
def test_predictions_that_do_not_match_the_data_are_refused(predictions, says, score_text):
    with pytest.raises(ConfigError, match=says):
        score_text("sst2", SST2, predictions)


def test_a_part_of_a_split_is_scored_on_request(score_text, said):
    assert score_text("sst2", SST2, tsv(1, 1), partial=True) == {"accuracy": 50}
    assert said == ["scoring the 2 examples of dev that are predicted"]


def test_a_test_file_cannot_be_scored(score_text):
    with pytest.raises(ConfigError, match="nothing to score: no example has a label"):
        score_text("sst2", "index\tsentence\n0\tgood\n", tsv(1), split="test")


def test_missing_files_are_missing_data(tmp_path, said):
    with pytest.raises(MissingDataError, match="no dev data at"):
        score(load_task("sst2"), tmp_path / "none.tsv", tmp_path, said.append)
    file = load_task("sst2").file(tmp_path, "dev")
    file.parent.mkdir(parents=True)
    file.write_text(SST2)
    with pytest.raises(MissingDataError, match=r"none\.tsv does not exist"):
        score(load_task("sst2"), tmp_path / "none.tsv", tmp_path, said.append)


# RACE


def race(*answers):
    options = [["a", "b", "c", "d"]] * len(answers)
    return {"article": "A.", "questions": ["Q?"] * len(answers), "options": options, "answers": answers}


def test_race_is_scored_together_and_by_level(score_text):
    data = {"high/1.txt": race("A", "B"), "middle/2.txt": race("C", "D")}
    predictions = {"high/1.txt/0": "A", "high/1.txt/1": "A", "middle/2.txt/0": "C", "middle/2.txt/1": "D"}
    expected = {"accuracy": 75, "accuracy_high": 50, "accuracy_middle": 100}
    assert score_text("race", data, predictions) == expected
    del predictions["high/1.txt/0"]
    with pytest.raises(ConfigError, match=r"examples without a prediction: 1 \(high/1\.txt/0\) of 4"):
        score_text("race", data, predictions)


# SQuAD


def squad(answers, marked):
    questions = [
        {"id": id, "question": "?", "answers": [{"text": text, "answer_start": 0} for text in texts]}
        | ({"is_impossible": not texts} if marked else {})
        for id, texts in answers.items()
    ]
    return {"data": [{"title": "", "paragraphs": [{"context": "cat", "qas": questions}]}]}


SQUAD1 = squad(
    {"a": ["cat"], "b": ["dog", "hound"]}, marked=False
)  # a gold text that is not in the context is scored too
SQUAD2 = squad({"a": ["cat"], "b": []}, marked=True)


def test_squad_1_1_is_scored_by_all_gold_texts_even_if_not_in_the_context(score_text, said):
    assert score_text("squad1", SQUAD1, {"a": "The cat", "b": "a hound"}) == {"exact_match": 100, "f1": 100}
    assert "no answer is in the context where it says: 1 (b)" in said[0]


def test_squad_questions_without_a_prediction_count_as_wrong_and_are_reported(score_text, said):
    assert score_text("squad1", SQUAD1, {"a": "cat", "x": "y"}) == {"exact_match": 50, "f1": 50}
    assert said[1] == "questions without a prediction count as wrong: 1 (b) of 2"
    assert said[2] == "predictions of questions that are not in the data are not scored: 1 (x)"


def test_predictions_of_other_questions_are_refused(score_text):
    for partial in (False, True):
        with pytest.raises(ConfigError, match=r"no question of the data is predicted; predictions of 1 \(x\)"):
            score_text("squad1", SQUAD1, {"x": "cat"}, partial=partial)


def test_squad_2_0_accepts_no_answer_probabilities(score_text, tmp_path):
    file = tmp_path / "na.json"
    file.write_text('{"a": 0.2, "b": 0.7}')
    predictions = {"a": "cat", "b": "cat"}
    assert score_text("squad2", SQUAD2, predictions)["exact"] == 50
    scores = score_text("squad2", SQUAD2, predictions, na_probs=file, threshold=0.5)
    assert (scores["exact"], scores["best_f1"], scores["best_f1_thresh"]) == (100, 100, 0.2)
    file.write_text('{"a": 0.2}')
    with pytest.raises(ConfigError, match=r"questions without a no-answer probability: 1 \(b\) of 2"):
        score_text("squad2", SQUAD2, predictions, na_probs=file)
    for name, data in (("squad1", SQUAD1), ("sst2", SST2)):
        with pytest.raises(ConfigError, match="no file of no-answer probabilities"):
            score_text(name, data, predictions if name == "squad1" else tsv(1, 0, 1, 0), na_probs=file)


# The shared data


@pytest.fixture(scope="module")
def official(shared_data, tmp_path_factory):
    """Folder with the official dev sets of SQuAD, published predictions and their official scores."""
    folder = tmp_path_factory.mktemp("tasks")
    with tarfile.open(shared_data / "squad.tar.xz") as archive:
        archive.extractall(folder, filter="data")
    return folder


@pytest.mark.parametrize(
    ("name", "dev", "predictions", "missing"),
    [
        ("squad1", "dev-v1.1", "v1.1-logistic-regression", 13),
        ("squad1", "dev-v1.1", "v1.1-bert-ensemble", 0),
        ("squad2", "full-dev-v2.0", "v2.0-bert-single", 0),
    ],
)
def test_published_predictions_get_exactly_the_scores_of_the_official_scripts(
    official, said, name, dev, predictions, missing
):
    expected = json.loads((official / "squad/predictions/official-scores.json").read_text())[predictions]
    task = load_task(name, [f"data.dev=squad/{dev}.json"])
    assert score(task, official / f"squad/predictions/{predictions}.json", official, said.append) == expected
    assert [f"count as wrong: {missing} (" in line for line in said] == ([True, False] if missing else [])


@pytest.mark.parametrize(
    ("name", "split", "count"),
    [
        ("squad1", "train", 7938),
        ("squad1", "dev", 10570),
        ("squad2", "train", 9226),
        ("squad2", "dev", 2647),
    ],
)
def test_every_question_of_the_shared_squad_files_can_be_used(official, name, split, count):
    examples, issues = load_task(name).read(official, split)
    assert (len(examples), issues) == (count, [])


def test_every_example_of_the_shared_glue_files_can_be_used(shared_data, tmp_path):
    with tarfile.open(shared_data / "glue.tar.xz") as archive:
        archive.extractall(tmp_path, filter="data")
    counts = {
        "cola": (8551, 1043),
        "sst2": (67349, 872),
        "mrpc": (3667, 408),
        "stsb": (5749, 1500),
        "rte": (2490, 277),
        "wnli": (635, 71),
        "qnli": (4370, 1093),
        "mnli": (7852, 1963),
    }
    for name, expected in counts.items():
        read = [load_task(name).read(tmp_path, split) for split in ("train", "dev")]
        assert tuple(len(examples) for examples, _ in read) == expected
        assert not any(issues for _, issues in read)


def test_gold_labels_score_100_and_a_constant_class_scores_its_share(shared_data, tmp_path, said):
    with tarfile.open(shared_data / "glue.tar.xz") as archive:
        archive.extractall(tmp_path, filter="data")
    task = load_task("mrpc")
    examples, _ = task.read(tmp_path, "dev")
    gold = {example.id: example.label for example in examples}
    assert evaluate(task, examples, gold, said.append) == {"accuracy": 100, "f1": 100}
    # The known baseline that always answers "paraphrase": 68.4 % accuracy, 81.2 % F1.
    constant = evaluate(task, examples, dict.fromkeys(gold, "1"), said.append)
    assert {name: round(value, 1) for name, value in constant.items()} == {"accuracy": 68.4, "f1": 81.2}


def test_every_question_of_the_shared_race_dev_set_can_be_used(shared_data, tmp_path):
    with tarfile.open(shared_data / "race.tar.xz") as archive:
        for member in archive:
            if member.name.removeprefix("./").startswith("race/dev/"):
                archive.extract(member, tmp_path, filter="data")
            elif member.name.removeprefix("./").startswith("race/train/"):
                break
    examples, issues = load_task("race").read(tmp_path, "dev")
    assert (len(examples), issues) == (4887, [])
