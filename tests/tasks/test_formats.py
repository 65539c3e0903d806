"""Files of tasks: each official form is read, and another form is refused by an error that names
it.
"""

import gzip
import json
import subprocess
from typing import Any

import pandas
import pytest
from toy_tasks import changed

from albert_lab.errors import ConfigError
from albert_lab.tasks.examples import Answer, ChoiceExample, SpanExample, TextExample
from albert_lab.tasks.formats import ChoicesFormat, GlueFormat, RaceFormat, SquadFormat
from albert_lab.tasks.kind import load_kind
from albert_lab.tasks.task import load_task

# The form of the official labelled files, with a header line if they have one.
FILES = {
    "cola": 'gj04\t1\t\tThe weights made the rope stretch.\ngj04\t0\t*\tThe rope "made stretch.\n',
    "sst2": 'sentence\tlabel\nit \'s a charming journey . \t1\n" bleak " and desperate \t0\n',
    "mrpc": '\ufeffQuality\t#1 ID\t#2 ID\t#1 String\t#2 String\n1\t7\t8\tHe said " no .\tHe '
    "refused\n0\t9\t10\tA\tB\n",
    "stsb": (
        "index\tgenre\tfilename\tyear\told_index\tsource1\tsource2\tsentence1\tsentence2\tscore\n"
        "0\tmain-news\tMSRpar\t2012test\t0\tnone\tnone\tA plane.\tAn air plane.\t5.000\n"
        "1\tmain-news\tMSRpar\t2012test\t1\tnone\tnone\tA dog.\tA cat.\t1.25\n"
    ),
    "mnli": (
        "index\tpromptID\tpairID\tgenre\tsentence1_binary_parse\tsentence2_binary_parse\tsentence1_parse\tsentence2_parse"
        "\tsentence1\tsentence2\tlabel1\tlabel2\tgold_label\n"
        "0\t63735\t63735n\tslate\t( The\t( The\t(ROOT\t(ROOT\tIt rains.\tIt is "
        "wet.\tneutral\tentailment\tentailment\n"
        "1\t91383\t91383c\tslate\t( x\t( x\t(ROOT\t(ROOT\tIt snows.\tIt is "
        "hot.\tneutral\tneutral\tcontradiction\n"
    ),
    "rte": "index\tsentence1\tsentence2\tlabel\n0\tA.\tB.\tnot_entailment\n1\tC.\tD.\tentailment\n",
}


@pytest.fixture
def read(tmp_path):
    """The examples and issues of a form in a file with this text, or with these objects as
    lines.
    """

    def run(form, content, name="train.tsv", training=True):
        if isinstance(content, list) and name.endswith(".jsonl"):
            content = "".join(json.dumps(row) + "\n" for row in content)
        text = content if isinstance(content, str) else json.dumps(content)
        (tmp_path / name).write_bytes(text.encode())
        return form.read(tmp_path / name, training)

    return run


def two_texts(**changes):
    plain = {"name": "glue", "text_a": "a", "text_b": "b", "labels": ("0", "1")}
    return GlueFormat.model_validate(plain | changes)


def choices(**changes):
    plain = {"name": "choices", "question": "goal", "options": ("one", "two", "three")}
    return ChoicesFormat.model_validate(plain | changes)


@pytest.mark.parametrize("name", FILES)
def test_an_official_file_gives_every_example(name, read):
    form: Any = load_task(name).format
    examples, issues = read(form, FILES[name])
    assert ([example.id for example in examples], issues) == (["0", "1"], "")
    labels = {example.label for example in examples}
    assert labels == {5.0, 1.25} if name == "stsb" else labels <= set(form.labels)
    assert len(labels) == 2


def test_short_lines_and_invalid_labels_are_left_out_of_training_and_named(read):
    form = load_task("mnli").format
    text = FILES["mnli"] + "2\tcut short\n" + "3\t\t\t\t\t\t\t\tA.\tB.\tneutral\tentailment\t-\n"
    examples, issues = read(form, text)
    assert len(examples) == 2
    assert "1 (train.tsv:4)" in issues
    assert "1 (train.tsv:5)" in issues
    assert read(load_task("cola").format, "gj04\t1\n" + FILES["cola"])[0][0].id == "1", (
        "the id is the line's number"
    )


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("mnli", FILES["rte"], "gold_label.*'index', 'sentence1', 'sentence2', 'label'"),
        ("sst2", "sentence\tlabel\n", r"train\.tsv"),
        ("sst2", "", r"train\.tsv"),
        ("cola", {"sentence": "x"}, r"train\.json.*columns"),
        ("sst2", [1], r"train\.tsv"),
        ("squad1", '{"data": [{"paragraphs": [', r"train\.json"),
        ("squad1", {"data": [{"text": "no question"}]}, r"train\.json"),
    ],
)
def test_a_file_of_another_form_is_refused(name, text, says, read):
    with pytest.raises(ConfigError, match=says):
        read(
            load_task(name).format,
            text,
            "train.json" if name in ("cola", "squad1") else "train.tsv",
        )


@pytest.mark.parametrize("name", ["train.jsonl", "train.json"])
def test_json_is_read(name, read):
    right = {"a": "x", "b": "y", "label": 1}
    without_text = {"a": "x", "label": 0}
    wrong = [without_text, *(right | of for of in ({"label": None}, {"a": " "}, {"a": "\ud83d"}))]
    examples, issues = read(two_texts(), [right, *wrong], name)
    assert examples == [TextExample("0", "x", "y", "1")]
    assert issues.count(": 1 (") == len(wrong)


def test_compressed_files_are_read(tmp_path):
    row = json.dumps({"a": "x", "b": "y", "label": 1})
    (tmp_path / "train.jsonl.gz").write_bytes(gzip.compress(row.encode()))
    examples, _ = two_texts().read(tmp_path / "train.jsonl.gz", True)
    assert examples == [TextExample("0", "x", "y", "1")]


def test_parquet_is_read(tmp_path):
    pandas.DataFrame([{"a": "x", "b": "y", "label": 1}]).to_parquet(tmp_path / "train.parquet")
    assert two_texts().read(tmp_path / "train.parquet", True)[0] == [
        TextExample("0", "x", "y", "1")
    ]


@pytest.mark.parametrize("separator", ",;")
def test_a_table_is_read_as_csv_says(separator, read):
    rows = 'a\tb\tlabel\n"two\nlines"\t"say ""no"""\t1\nplain\ttext\t0\n'.replace("\t", separator)
    examples, issues = read(two_texts(), rows, "train.csv")
    assert [(example.text_a, example.text_b) for example in examples] == [
        ("two\nlines", 'say "no"'),
        ("plain", "text"),
    ]
    assert not issues


def test_each_option_has_a_column_and_the_last_columns_may_be_empty(read):
    text = "goal\tone\ttwo\tthree\tlabel\ng\tx\ty\tz\tC\nh\tx\ty\t\tB\ni\tx\t\t\tA\nj\t\ty\t\tB\n"
    examples, issues = read(choices(), text, "a.tsv")
    assert examples == [
        ChoiceExample("0", "", "g", ("x", "y", "z"), 2),
        ChoiceExample("1", "", "h", ("x", "y"), 1),
    ]
    assert issues.count(": 1 (a.tsv:") == 2


def test_options_are_a_list_in_json_and_labels_that_are_no_letters_must_be_named(read):
    def rows(*labels):
        return [{"goal": "g", "all": ["x", "y", 3], "label": label} for label in labels]

    named = choices(options="all", labels=("0", "1", "2", "3"))
    examples, issues = read(named, rows("0", 2.0, 3), "a.jsonl")
    assert [example.label for example in examples] == [0, 2]
    assert examples[0].options == ("x", "y", "3")
    assert issues.count(": 1 (") == 1, "there is no fourth option"
    examples, issues = read(choices(options="all"), rows("A", "2"), "a.jsonl")
    assert [example.label for example in examples] == [0]
    assert "'2' is none of format.labels, A, B, C" in issues


@pytest.mark.parametrize("options", ["choices", "choices.text"])
def test_nested_options_have_the_labels_beside_them(options, read):
    labels = (["A", "B"], ["1", "2"])
    rows = [
        {"goal": "g", "choices": {"text": ["x", "y"], "label": of}, "label": of[1]} for of in labels
    ]
    examples, issues = read(choices(options=options), rows, "a.jsonl")
    assert [(example.options, example.label) for example in examples] == [(("x", "y"), 1)] * 2
    assert not issues


def test_a_quoted_cell_of_several_lines_is_refused_in_a_tab_separated_file(read):
    with pytest.raises(
        ConfigError, match=r"a\.tsv:2: a quoted cell of several lines; write it as CSV"
    ):
        read(two_texts(), 'a\tb\tlabel\n"one\ntwo"\tx\t1\n', "a.tsv")
    examples, issues = read(
        two_texts(), "a\tb\tlabel\n" + "x\ty\t1\n" * 2000 + 'x\t"one\ntwo"\t1\n', "a.tsv"
    )
    assert (len(examples), "more or fewer columns" in issues) == (2000, True), (
        "of QQP a few are left out and counted"
    )


RACE = RaceFormat(name="race")
OPTIONS = ["a cat", "a dog", "an owl", "a cow"]


def passage(*answers, **changes):
    content = {
        "answers": list(answers),
        "options": [OPTIONS] * 2,
        "questions": ["Who sat on the mat?", "It was _."],
    }
    return content | {"article": "A cat sat. A dog barked.", "id": "high7.txt"} | changes


@pytest.fixture
def folder(tmp_path):
    """A function that writes passages into a split's folder."""

    def write(**contents):
        for name, content in contents.items():
            file = tmp_path / "dev" / f"{name.replace('_', '/')}.txt"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(json.dumps(content))
        return tmp_path / "dev"

    return write


def test_the_id_of_a_question_has_its_level_its_passage_and_its_number(folder):
    split = folder(
        high_7=passage("A", "B"),
        middle_12=passage("D", "C"),
        high_all="the release repeats the others here",
    )
    examples, issues = RACE.read(split, training=True)
    ids = ["high/7.txt/0", "high/7.txt/1", "middle/12.txt/0", "middle/12.txt/1"]
    assert [example.id for example in examples] == ids
    assert [example.label for example in examples] == [0, 1, 3, 2]
    assert examples[1] == ChoiceExample(
        ids[1], passage()["article"], "It was _.", tuple(OPTIONS), 1
    )
    assert not issues


def test_a_folder_with_all_passages_in_one_file_is_read_from_it(folder):
    split = folder(high_7=passage("A", "B"), middle_all=passage("D", "C"))
    file = split / "middle/all.txt"
    file.write_text(f"{file.read_text()}\n{json.dumps(passage('A', 'B'))}\n")
    examples, _ = RACE.read(split, training=True)
    names = ["high/7.txt", "middle/all.txt:1", "middle/all.txt:2"]
    assert [example.id for example in examples[::2]] == [f"{name}/0" for name in names]
    assert [example.label for example in examples] == [0, 1, 3, 2, 0, 1]
    file.write_text("{}")
    with pytest.raises(ConfigError, match=r"all\.txt:1"):
        RACE.read(split, training=True)


SQUAD1, SQUAD2 = (
    SquadFormat(name="squad", unanswerable=unanswerable) for unanswerable in (False, True)
)
CONTEXT = "The cat sat on the mat. Dogs — ça va — bark."


def question(id="q", answers=(("cat", 4),), **marks):
    answers = [{"text": text, "answer_start": start} for text, start in answers]
    return {"id": id, "question": "Who sat?", "answers": answers, **marks}


def squad(*questions):
    return {
        "data": [{"title": "Cats", "paragraphs": [{"context": CONTEXT, "qas": list(questions)}]}]
    }


@pytest.mark.parametrize("name", ["train.jsonl", "train.json"])
def test_rows_as_datasets_saves_them_are_read(name, read):
    answers = {"text": ["cat"], "answer_start": [4]}
    rows = [{"id": 7, "context": CONTEXT, "question": "Who sat?", "answers": answers}]
    examples, _ = read(SQUAD1, rows if name == "train.jsonl" else {"data": rows}, name)
    assert examples == [SpanExample("7", "Who sat?", CONTEXT, (Answer("cat", 4),), False)]
    rows.append(rows[0] | {"id": 8, "answers": {"text": [], "answer_start": []}})
    rows.append(rows[0] | {"id": 9, "is_impossible": True})  # with plausible answers, as in KLUE
    examples, issues = read(SQUAD2, rows, "train.jsonl")
    assert ([bool(example.answers) for example in examples], issues) == ([True, False, False], "")


BAD = squad(
    question("good"),
    question("one bad", [("cat", 4), ("cow", 4)]),
    question("all bad", [("cow", 4), ("a", 0), ("", 0)]),
    question("none", ()),
)


def test_answers_that_are_not_in_the_context_are_left_out_of_training_and_named(read):
    examples, issues = read(SQUAD1, BAD, "train.json")
    assert [example.id for example in examples] == ["good", "one bad"]
    assert [answer.start for answer in examples[1].answers] == [4, None]
    assert all(f": 1 ({id})" in issues for id in ("all bad", "none"))
    examples, issues = read(SQUAD1, BAD, "dev.json", training=False)
    assert [example.id for example in examples] == ["good", "one bad", "all bad"]
    assert [answer.text for answer in examples[2].answers] == ["cow", "a", ""]
    assert "may not find it: 1 (all bad)" in issues


def test_an_answer_that_stands_elsewhere_than_the_file_says_is_found_by_its_text_and_counted(read):
    context = "\U0001f30d\U0001f30d The mat was red. The cat sat on the mat."
    places = {
        "right": ("cat", 24),
        "off by one": ("cat", 25),
        "minus one": ("cat", -1),
        "utf-16": ("mat", 9),
    }
    places |= {"twice": ("mat", 20)}
    content = squad(*(question(id, [answer]) for id, answer in places.items()))
    content["data"][0]["paragraphs"][0]["context"] = context
    for training in (True, False):
        examples, issues = read(SQUAD1, content, "train.json", training)
        starts = [example.answers[0].start for example in examples]
        assert starts == [24, 24, 24, 7, *([] if training else [None])]
        assert "found by its text" in issues
        assert ": 3 (off by one, minus one, utf-16)" in issues
        assert ": 1 (twice)" in issues


@pytest.mark.parametrize("label", ["-", -1, -1.0])
def test_an_example_without_a_gold_label_is_left_out_with_this_reason(label, read):
    rows = [{"a": "x", "b": "y", "label": label}, {"a": "x", "b": "y", "label": 1}]
    examples, issues = read(two_texts(), rows, "a.jsonl")
    assert [example.label for example in examples] == ["1"]
    assert "no gold label" in issues
    examples, issues = read(two_texts(labels=("-1", "1", "-")), rows, "a.jsonl")
    assert (len(examples), issues) == (2, "")


@pytest.fixture(scope="module")
def official(shared_data, tmp_path_factory):
    """Folder with official files, published predictions and their official scores."""
    folder = tmp_path_factory.mktemp("tasks")
    for name in ("squad", "glue"):
        subprocess.run(["tar", "-xJf", shared_data / f"{name}.tar.xz", "-C", folder], check=True)
    return folder


@pytest.mark.parametrize(
    ("name", "dev", "predictions"),
    [
        ("squad1", "dev-v1.1", "v1.1-logistic-regression"),
        ("squad1", "dev-v1.1", "v1.1-bert-ensemble"),
        ("squad2", "full-dev-v2.0", "v2.0-bert-single"),
    ],
)
def test_published_predictions_get_exactly_the_scores_of_the_official_scripts(
    official, name, dev, predictions
):
    expected = json.loads((official / "squad/predictions/official-scores.json").read_text())[
        predictions
    ]
    answers = json.loads((official / f"squad/predictions/{predictions}.json").read_text())
    task = changed(load_task(name), f"data.dev=squad/{dev}.json")
    kind = load_kind(task, task.at("paper"))
    examples = task.read(official, "dev")[0]
    scores = kind.score(examples, [answers.get(example.id, "") for example in examples]).values
    assert scores == {name: value for name, value in expected.items() if not name.endswith("total")}


COUNTS = {  # of train and dev
    "cola": (8551, 1043),
    "sst2": (67349, 872),
    "mrpc": (3667, 408),
    "stsb": (5749, 1500),
    "rte": (2490, 277),
    "qnli": (4370, 1093),
    "mnli": (7852, 1963),
    "squad1": (7938, 10570),
    "squad2": (9226, 2647),
}


@pytest.mark.parametrize(("name", "counts"), COUNTS.items())
def test_every_example_of_the_shared_files_can_be_used(official, name, counts):
    read = [load_task(name).read(official, split) for split in ("train", "dev")]
    assert tuple(len(examples) for examples, _ in read) == counts
    assert not any(issues for _, issues in read)


def test_quotation_marks_and_unicode_separators_do_not_join_or_split_lines(read):
    text = 'sentence\tlabel\r\n"open quote\t1\r\nline\u2028separator, \x85\t0\r\n" closed\t1'
    examples, issues = read(load_task("sst2").format, text)
    assert [example.text_a for example in examples] == [
        '"open quote',
        "line\u2028separator, \x85",
        '" closed',
    ]
    assert not issues
