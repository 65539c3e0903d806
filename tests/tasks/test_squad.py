import json

import pytest

from albert_lab.errors import ConfigError
from albert_lab.tasks.examples import Answer, Issue, SpanExample
from albert_lab.tasks.formats.squad import SquadFormat

SQUAD1, SQUAD2 = (SquadFormat(name="squad", unanswerable=unanswerable) for unanswerable in (False, True))
CONTEXT = "The cat sat on the mat. Dogs — ça va — bark."


def question(id="q", answers=(("cat", 4),), **marks):
    answers = [{"text": text, "answer_start": start} for text, start in answers]
    return {"id": id, "question": "Who sat?", "answers": answers, **marks}


def squad(*questions, context=CONTEXT, version="1.1"):
    paragraphs = [{"context": context, "qas": list(questions)}]
    return {"version": version, "data": [{"title": "Cats", "paragraphs": paragraphs}]}


def read(form, content, tmp_path, labelled=True):
    file = tmp_path / "train.json"
    file.write_text(content if isinstance(content, str) else json.dumps(content))
    return form.read(file, labelled)


def test_a_question_of_1_1_has_its_context_and_answers(tmp_path):
    examples, issues = read(SQUAD1, squad(question(answers=[("cat", 4), ("The cat", 0)])), tmp_path)
    answers = (Answer("cat", 4), Answer("The cat", 0))
    assert examples == [SpanExample("q", "Who sat?", CONTEXT, answers, is_impossible=False, title="Cats")]
    assert not issues


def test_a_question_of_2_0_without_an_answer_is_impossible(tmp_path):
    content = squad(question("a", is_impossible=False), question("b", (), is_impossible=True))
    examples, issues = read(SQUAD2, content, tmp_path)
    assert [(example.is_impossible, len(example.answers)) for example in examples] == [(False, 1), (True, 0)]
    assert not issues


BAD = squad(
    question("good"),
    question("one bad", [("cat", 4), ("cat", 5)]),
    question("all bad", [("cow", 4), ("cat", -40), ("", 0)]),
    question("none", ()),
    question("good"),
)


def test_answers_that_are_not_in_the_context_are_left_out_and_named(tmp_path):
    examples, issues = read(SQUAD1, BAD, tmp_path)
    assert [example.id for example in examples] == ["good", "one bad"]
    assert [answer.start for answer in examples[1].answers] == [4, None]
    assert issues == [
        Issue("one bad", "an answer is not in the context"),
        Issue("all bad", "no answer is in the context where it says"),
        Issue("none", "no answer"),
        Issue("good", "its id occurs twice"),
    ]


def test_if_labels_are_not_needed_every_question_is_kept_with_all_gold_texts(tmp_path):
    examples, issues = read(SQUAD1, BAD, tmp_path, labelled=False)
    assert [example.id for example in examples] == ["good", "one bad", "all bad", "none"]
    assert [answer.text for answer in examples[2].answers] == ["cow", "cat", ""]
    assert not any(example.is_impossible for example in examples)
    assert len(issues) == 4


def test_a_question_whose_mark_contradicts_its_answers_is_left_out_and_named(tmp_path):
    content = squad(
        question("good", is_impossible=False), question("a", is_impossible=True), question("b", (), is_impossible=False)
    )
    examples, issues = read(SQUAD2, content, tmp_path)
    assert [example.id for example in examples] == ["good"]
    assert issues == [
        Issue("a", "marked impossible, with an answer"),
        Issue("b", "not marked impossible, without an answer"),
    ]
    # For scoring, the official script uses the answers.
    assert [example.is_impossible for example in read(SQUAD2, content, tmp_path, labelled=False)[0]] == [
        False,
        False,
        True,
    ]


@pytest.mark.parametrize(
    ("form", "content", "says"),
    [
        (SQUAD1, squad(question(is_impossible=False)), r"train\.json: a SQuAD 2\.0 file \(question q .*\), not 1\.1"),
        (SQUAD2, squad(question()), r"train\.json: a SQuAD 1\.1 file .* not 2\.0"),
        (SQUAD1, json.dumps(squad(question()))[:-30], r"train\.json: invalid or truncated JSON: EOF while parsing"),
        (
            SQUAD1,
            squad(question(answers=[("cow", 4)])),
            r"no question can be used: no answer is in the context .*: 1 \(q\)",
        ),
        (SQUAD1, squad(), "no question can be used: it has none"),
    ],
)
def test_a_file_of_another_form_is_refused(form, content, says, tmp_path):
    with pytest.raises(ConfigError, match=says):
        read(form, content, tmp_path)


@pytest.mark.parametrize(("form", "version"), [(SQUAD1, "1.1"), (SQUAD2, "v2.0")])
def test_the_official_form_is_written_and_read_back(form, version, tmp_path):
    marks = {"is_impossible": False} if form.unanswerable else {}
    content = squad(question("a", **marks), question("b", [("ça va", 31), ("Dogs", 24)], **marks), version=version)
    if form.unanswerable:
        content["data"][0]["paragraphs"][0]["qas"].append(question("c", (), is_impossible=True))
    content["data"][0]["paragraphs"].append({"context": "An owl.", "qas": [question("d", [("owl", 3)], **marks)]})
    content["data"].append(squad(question("e", **marks))["data"][0] | {"title": "Other cats"})
    examples, issues = read(form, content, tmp_path)
    assert not issues
    form.write(examples, tmp_path / "written.json")
    assert json.loads((tmp_path / "written.json").read_text()) == content


def test_an_answer_that_is_not_in_the_context_is_read_back_unchanged(tmp_path):
    examples, _ = read(SQUAD1, BAD, tmp_path, labelled=False)
    SQUAD1.write(examples, tmp_path / "written.json")
    assert SQUAD1.read(tmp_path / "written.json", labelled=False)[0] == examples


def test_predictions_are_read_back_exactly(tmp_path):
    predictions = {"a": "ça va", "b": ""}
    SQUAD2.write_predictions(predictions, tmp_path / "predictions.json")
    assert json.loads((tmp_path / "predictions.json").read_text()) == predictions
    assert SQUAD2.read_predictions(tmp_path / "predictions.json") == predictions
