from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from albert_lab.errors import ConfigError, MissingDataError
from albert_lab.tasks.examples import Issue, TextExample, describe
from albert_lab.tasks.task import load_task, task_names

FORMS: dict[str, Any] = {name: load_task(name).format for name in task_names() if load_task(name).family == "glue"}
# The form of the official labelled files, with a header line if they have one.
FILES = {
    "cola": 'gj04\t1\t\tThe weights made the rope stretch.\ngj04\t0\t*\tThe rope "made stretch.\n',
    "sst2": 'sentence\tlabel\nit \'s a charming journey . \t1\n" bleak " and desperate \t0\n',
    "mrpc": '\ufeffQuality\t#1 ID\t#2 ID\t#1 String\t#2 String\n1\t7\t8\tHe said " no .\tHe refused\n0\t9\t10\tA\tB\n',
    "qqp": "id\tqid1\tqid2\tquestion1\tquestion2\tis_duplicate\n133273\t1\t2\tWhy?\tHow come?\t1\n9\t3\t4\tA?\tB?\t0\n",
    "stsb": (
        "index\tgenre\tfilename\tyear\told_index\tsource1\tsource2\tsentence1\tsentence2\tscore\n"
        "0\tmain-news\tMSRpar\t2012test\t0\tnone\tnone\tA plane.\tAn air plane.\t5.000\n"
        "1\tmain-news\tMSRpar\t2012test\t1\tnone\tnone\tA dog.\tA cat.\t1.25\n"
    ),
    "mnli": (
        "index\tpromptID\tpairID\tgenre\tsentence1_binary_parse\tsentence2_binary_parse\tsentence1_parse\tsentence2_parse"
        "\tsentence1\tsentence2\tlabel1\tlabel2\tgold_label\n"
        "0\t63735\t63735n\tslate\t( The\t( The\t(ROOT\t(ROOT\tIt rains.\tIt is wet.\tneutral\tentailment\tentailment\n"
        "1\t91383\t91383c\tslate\t( x\t( x\t(ROOT\t(ROOT\tIt snows.\tIt is hot.\tneutral\tneutral\tcontradiction\n"
    ),
    "qnli": "index\tquestion\tsentence\tlabel\n0\tWho?\tHe did.\tentailment\n1\tWhen?\tIt is.\tnot_entailment\n",
    "rte": "index\tsentence1\tsentence2\tlabel\n0\tA.\tB.\tnot_entailment\n1\tC.\tD.\tentailment\n",
    "wnli": "index\tsentence1\tsentence2\tlabel\n0\tThe drain is clogged.\tIt is clogged.\t1\n1\tC.\tD.\t0\n",
}
TEST_FILES = {
    "cola": "index\tsentence\n0\tBill whistled past the house.\n",
    "sst2": "index\tsentence\n0\tuneasy mishmash .\n",
    "qqp": "id\tquestion1\tquestion2\n0\tWould it?\tCould it?\n",
    "mnli": "index\tpromptID\tsentence1\tsentence2\n0\t1\tIt rains.\tIt is wet.\n",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("glue")


def read(name, text, tmp_path, labelled=True):
    file = tmp_path / "train.tsv"
    file.write_bytes(text.encode())
    return FORMS[name].read(file, labelled)


@pytest.mark.parametrize("name", FORMS)
def test_an_official_file_gives_every_example(name, tmp_path):
    examples, issues = read(name, FILES[name], tmp_path)
    assert ([example.id for example in examples], issues) == (["0", "1"], [])
    labels = {example.label for example in examples}
    assert labels == {5.0, 1.25} if name == "stsb" else labels <= set(FORMS[name].labels)
    assert len(labels) == 2


@pytest.mark.parametrize(
    ("name", "first"),
    [
        ("cola", TextExample("0", "The weights made the rope stretch.", None, "1")),
        ("mrpc", TextExample("0", 'He said " no .', "He refused", "1")),
        ("mnli", TextExample("0", "It rains.", "It is wet.", "entailment")),
        ("stsb", TextExample("0", "A plane.", "An air plane.", 5.0)),
    ],
)
def test_texts_and_label_are_found_by_the_names_of_the_columns(name, first, tmp_path):
    assert read(name, FILES[name], tmp_path)[0][0] == first


@pytest.mark.parametrize("name", TEST_FILES)
def test_a_test_file_has_no_labels(name, tmp_path):
    (example,), issues = read(name, TEST_FILES[name], tmp_path, labelled=False)
    assert (example.id, example.label, issues) == ("0", None, [])


def test_quotation_marks_and_carriage_returns_do_not_join_or_split_lines(tmp_path):
    text = 'sentence\tlabel\r\n"open quote\t1\r\nline\u2028separator, \x85 and \x0b\t0\r\n" closed\t1'
    examples, issues = read("sst2", text, tmp_path)
    assert [example.text_a for example in examples] == ['"open quote', "line\u2028separator, \x85 and \x0b", '" closed']
    assert not issues


def test_short_lines_and_invalid_labels_are_left_out_and_named(tmp_path):
    text = FILES["mnli"] + "2\tcut short\n" + "3\t\t\t\t\t\t\t\tA.\tB.\tneutral\tentailment\t-\n" + "4\n"
    examples, issues = read("mnli", text, tmp_path)
    assert len(examples) == 2
    assert issues == [
        Issue("train.tsv:4", "2 columns instead of 13"),
        Issue("train.tsv:5", "gold_label is '-', not one of contradiction, entailment, neutral"),
        Issue("train.tsv:6", "1 columns instead of 13"),
    ]
    assert describe(issues[:1] * 5) == ("2 columns instead of 13: 5 (train.tsv:4, train.tsv:4, train.tsv:4, ...)")


def test_if_labels_are_not_needed_an_example_without_one_is_kept_and_named(tmp_path):
    examples, issues = read("mnli", FILES["mnli"].replace("\tcontradiction\n", "\t-\n"), tmp_path, labelled=False)
    assert [example.label for example in examples] == ["entailment", None]
    assert [issue.example for issue in issues] == ["train.tsv:3"]


def test_the_id_is_the_line_number_even_if_lines_are_left_out(tmp_path):
    examples, _ = read("cola", "gj04\t1\n" + FILES["cola"], tmp_path)
    assert [example.id for example in examples] == ["1", "2"]


@pytest.mark.parametrize("score", ["nan", "inf", "five", ""])
def test_a_score_that_is_not_a_finite_number_is_an_invalid_label(score, tmp_path):
    _, (issue,) = read("stsb", FILES["stsb"].replace("1.25", score), tmp_path)
    assert issue == Issue("train.tsv:3", f"score is {score!r}, not a number")


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("mnli", FILES["mnli"].replace("sentence2\t", "premise\t"), r"train\.tsv: no column sentence2; .*premise"),
        ("mnli", FILES["rte"], "no column gold_label; its columns: index, sentence1, sentence2, label"),
        ("sst2", TEST_FILES["sst2"], "no column label"),
        ("sst2", "sentence\tlabel\n", "no example can be used: it has none"),
        ("sst2", "sentence\tlabel\ngood\tpositive\n", "no example can be used: label is 'positive', not one of 0, 1"),
        ("cola", FILES["wnli"], "no example can be used: label is 'sentence1', not one of 0, 1"),
        ("cola", "", r"train\.tsv is empty"),
    ],
)
def test_a_file_of_another_form_is_refused(name, text, says, tmp_path):
    with pytest.raises(ConfigError, match=says):
        read(name, text, tmp_path)


def test_bytes_that_are_not_utf_8_are_named_with_their_line(tmp_path):
    file = tmp_path / "dev.tsv"
    file.write_bytes(b"sentence\tlabel\ngood\t1\ncaf\xe9\t0\n")
    with pytest.raises(ConfigError, match=r"dev\.tsv:3: not UTF-8 \(byte 0xe9"):
        FORMS["sst2"].read(file, labelled=True)


def test_a_missing_file_is_missing_data(tmp_path):
    with pytest.raises(MissingDataError, match=r"none\.tsv does not exist"):
        FORMS["sst2"].read(tmp_path / "none.tsv", labelled=True)
    with pytest.raises(ConfigError, match="is a folder"):
        FORMS["sst2"].read(tmp_path, labelled=True)


# Writing

TEXTS = st.text(st.characters(exclude_characters="\0\t\r\n", exclude_categories=["Cs"])).filter(
    lambda text: text.strip()
)


@given(name=st.sampled_from(sorted(FORMS)), labelled=st.booleans(), data=st.data())
def test_written_examples_are_read_back(name, labelled, data, folder):
    form = FORMS[name]
    label = st.none() if not labelled else st.sampled_from(form.labels) if form.labels else st.sampled_from([0.0, 3.8])
    text_b = TEXTS if form.text_b else st.none()
    cells = data.draw(st.lists(st.tuples(TEXTS, text_b, label), min_size=1, max_size=4))
    examples = [TextExample(str(number), *row) for number, row in enumerate(cells)]
    form.write(examples, folder / "file.tsv")
    assert form.read(folder / "file.tsv", labelled) == (examples, [])


def test_a_file_is_written_with_the_official_columns(tmp_path):
    file = tmp_path / "dev.tsv"
    FORMS["mrpc"].write([TextExample("0", "A\tB\nC", 'D "', "1")], file)
    assert file.read_text() == 'Quality\t#1 ID\t#2 ID\t#1 String\t#2 String\n1\t\t\tA B C\tD "\n'
    FORMS["cola"].write([TextExample("0", "A", None, "0")], file)
    assert file.read_text() == "\t0\t\tA\n"
    FORMS["stsb"].write([TextExample("0", "A", "B", 2.33333333333333)], file)
    assert file.read_text().endswith("\n0\t\t\t\t\t\t\tA\tB\t2.33333333333333\n")
    FORMS["cola"].write([TextExample("0", "A", None, None)], file)
    assert file.read_text() == "index\tsentence\n0\tA\n"


# Predictions


def test_predictions_are_written_in_the_form_of_the_leaderboard(tmp_path):
    file = tmp_path / "MNLI-m.tsv"
    form = FORMS["mnli"]
    form.write_predictions({"0": "neutral", "1": "entailment"}, file)
    assert file.read_text() == "index\tprediction\n0\tneutral\n1\tentailment\n"
    assert form.read_predictions(file) == {"0": "neutral", "1": "entailment"}


@given(
    predictions=st.dictionaries(st.integers(0).map(str), st.floats(allow_nan=False, allow_infinity=False), min_size=1)
)
def test_predicted_numbers_are_read_back_exactly(predictions, folder):
    file = folder / "STS-B.tsv"
    FORMS["stsb"].write_predictions(predictions, file)
    assert FORMS["stsb"].read_predictions(file) == predictions


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", r"QNLI\.tsv:1: the first line must be index<TAB>prediction"),
        ("0\tentailment\n", ":1: the first line must be"),
        ("index\tprediction\n0\n", ":2: 1 columns instead of 2"),
        ("index\tprediction\n0\tentailment\n0\tentailment\n", ":3: index 0 occurs twice"),
        (
            "index\tprediction\n0\tentailment\n1\tneutral\n2\t1\n3\t0\n4\t\n",
            r"not one of entailment, not_entailment: 4 \(line 3: neutral, line 4: 1, line 5: 0, \.\.\.\)",
        ),
    ],
)
def test_predictions_of_another_form_are_refused(text, says, tmp_path):
    file = tmp_path / "QNLI.tsv"
    file.write_text(text)
    with pytest.raises(ConfigError, match=says):
        FORMS["qnli"].read_predictions(file)


def test_a_csv_file_has_quoted_cells_with_commas_quotation_marks_and_line_feeds(tmp_path):
    (tmp_path / "dev.csv").write_text('text,label\n"A ""good"", long\nfilm.",1\nBad.,0\nshort\n')
    task = tmp_path / "senti.yaml"
    data = "data: {train: dev.csv, dev: dev.csv}\n"
    task.write_text(f'kind: classification\n{data}format: {{text_a: text, labels: ["0", "1"]}}\n')
    result, issues = load_task(str(task)).read(tmp_path, "dev")
    assert [(example.text_a, example.label) for example in result] == [('A "good", long\nfilm.', "1"), ("Bad.", "0")]
    assert "dev.csv:5" in describe(issues)
