import json

import pytest

from albert_lab.errors import ConfigError, MissingDataError
from albert_lab.tasks.examples import ChoiceExample, Issue
from albert_lab.tasks.formats.race import RaceFormat, level

RACE = RaceFormat(name="race")
OPTIONS = ["a cat", "a dog", "an owl", "a cow"]


def passage(*answers, questions=("Who sat on the mat?", "It was _ that barked."), **changes):
    content = {"answers": list(answers), "options": [OPTIONS] * len(questions), "questions": list(questions)}
    return content | {"article": "A cat sat. A dog barked.", "id": "high7.txt"} | changes


@pytest.fixture
def folder(tmp_path):
    """A function that writes passages into a split's folder."""

    def write(**contents):
        for name, content in contents.items():
            file = tmp_path / "dev" / f"{name.replace('_', '/')}.txt"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(content if isinstance(content, str) else json.dumps(content))
        return tmp_path / "dev"

    return write


def test_the_id_of_a_question_has_its_level_its_passage_and_its_number(folder):
    examples, issues = RACE.read(folder(high_7=passage("A", "B"), middle_12=passage("D", "C")), labelled=True)
    assert [example.id for example in examples] == [
        "high/7.txt/0",
        "high/7.txt/1",
        "middle/12.txt/0",
        "middle/12.txt/1",
    ]
    assert [example.label for example in examples] == [0, 1, 3, 2]
    assert examples[1] == ChoiceExample(
        "high/7.txt/1", "A cat sat. A dog barked.", "It was _ that barked.", tuple(OPTIONS), 1
    )
    assert [level(example.id) for example in examples] == ["high", "high", "middle", "middle"]
    assert not issues


def test_the_file_all_txt_of_the_release_is_not_read(folder):
    split = folder(high_7=passage("A", "B"), high_all="{}\n{}\n")
    assert len(RACE.read(split, labelled=True)[0]) == 2


def test_passages_without_a_level_are_read_too(folder):
    examples, _ = RACE.read(folder(**{"7": passage("A", "B")}), labelled=True)
    assert [(example.id, level(example.id)) for example in examples] == [("7.txt/0", ""), ("7.txt/1", "")]


def test_a_question_without_four_options_or_a_letter_is_left_out_and_named(folder):
    three = passage("A", "B", options=[OPTIONS[:3], OPTIONS])
    examples, issues = RACE.read(
        folder(high_1=three, high_2=passage("E", ""), high_3=passage("AB", "C")), labelled=True
    )
    assert [example.id for example in examples] == ["high/1.txt/1", "high/3.txt/1"]
    assert issues[:2] == [
        Issue("high/1.txt/0", "3 options instead of 4"),
        Issue("high/2.txt/0", "the answer is 'E', not one of A, B, C, D"),
    ]
    assert [issue.example for issue in issues[2:]] == ["high/2.txt/1", "high/3.txt/0"]


def test_a_passage_without_answers_is_refused_if_labels_are_needed(folder):
    content = passage()
    del content["answers"]
    split = folder(high_7=content)
    with pytest.raises(ConfigError, match=r"high/7\.txt: answers are missing"):
        RACE.read(split, labelled=True)
    examples, issues = RACE.read(split, labelled=False)
    assert ([example.label for example in examples], issues) == ([None, None], [])


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (passage("A"), r"high/7\.txt: 2 questions, 2 options, 1 answers"),
        (json.dumps(passage("A", "B"))[:-9], r"high/7\.txt: invalid or truncated JSON: EOF while parsing"),
        (passage(questions=()), r"dev: no question can be used"),
    ],
)
def test_a_passage_of_another_form_is_refused(content, says, folder):
    with pytest.raises(ConfigError, match=says):
        RACE.read(folder(high_7=content), labelled=True)


def test_a_folder_without_passages_is_missing_data(tmp_path):
    with pytest.raises(MissingDataError, match=r"has no passage"):
        RACE.read(tmp_path, labelled=True)


def test_the_official_form_is_written_and_read_back(folder, tmp_path):
    split = folder(high_7=passage("A", "B"), middle_12=passage("C", questions=["Où?"], id="middle12.txt"))
    examples, _ = RACE.read(split, labelled=True)
    RACE.write(examples, tmp_path / "written")
    for name in ("high/7.txt", "middle/12.txt"):
        assert json.loads((tmp_path / "written" / name).read_text()) == json.loads((split / name).read_text())
    assert RACE.read(tmp_path / "written", labelled=True) == (examples, [])


def test_predictions_are_letters_by_question(tmp_path):
    file = tmp_path / "predictions.json"
    RACE.write_predictions({"high/7.txt/0": 0, "high/7.txt/1": 3}, file)
    assert json.loads(file.read_text()) == {"high/7.txt/0": "A", "high/7.txt/1": "D"}
    assert RACE.read_predictions(file) == {"high/7.txt/0": 0, "high/7.txt/1": 3}


def test_predictions_that_are_not_letters_are_refused(tmp_path):
    file = tmp_path / "predictions.json"
    file.write_text('{"q": "A", "r": "E", "s": "", "t": "AB"}')
    with pytest.raises(ConfigError, match=r"not one of A, B, C, D: 3 \(r: E, s: , t: AB\)"):
        RACE.read_predictions(file)
