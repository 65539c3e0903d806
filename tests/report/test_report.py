import json
import os
import re
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
from toy_reports import toy_report

from albert_lab.analysis import analysis
from albert_lab.analysis.analysis import Analysis
from albert_lab.analysis.frame import RANDOM
from albert_lab.analysis.verdict import Outcome
from albert_lab.report import markdown, notes, report, tables
from albert_lab.report.numbers import value
from albert_lab.report.wording import answer, claims_of
from albert_lab.studies import experiment
from albert_lab.studies import study as studies
from albert_lab.studies.claims import Kind

GOLDEN = Path(__file__).with_name("golden")


def analysed(tmp_path: Path, name: str, seeds: int = 3) -> Analysis:
    return analysis.read(toy_report(tmp_path / name, experiment.named(name), seeds))


def asking(result: Analysis, **changes: object) -> Analysis:
    """The same numbers with another experiment."""
    asked = result.experiment.model_copy(update=changes)
    return Analysis(result.study.model_copy(update={"experiment": asked}), result.frame)


@pytest.mark.parametrize("name", [file.stem for file in experiment.files()])
def test_every_experiment_has_a_report_and_those_in_the_folder_are_the_golden_ones(
    name, full, empty_figures
):
    text, golden = report.write(*full(name)).read_text(), GOLDEN / f"{name}.md"
    assert text.startswith(f"# {markdown.plain(experiment.named(name).title)}\n")
    assert re.findall("^## .*", text, re.MULTILINE) == [
        "## Results",
        "## What to know",
        "## Provenance",
    ]
    if golden.exists():
        if os.environ.get("ALBERT_LAB_GOLDEN") == "write":
            golden.write_text(text)
        assert text == golden.read_text()


@pytest.mark.parametrize("name", ["sharing", "model-sizes", "glue", "sop-vs-nsp"])
def test_no_table_has_more_than_eight_columns_and_three_lines_change_the_reading(name, full):
    _, result = full(name)
    every = [tables.main_table(result), *tables.other_tables(result), tables.tasks_table(result)]
    assert all(len(table.header) <= 8 for table in every)
    assert all(len(line) == len(table.header) for table in every for line in table.body)
    assert len(notes.first(result)) <= 3
    assert len(notes.others(result)) <= 6
    shown = [heading.split(" ")[0] for table in every[:-1] for heading in table.header[1:]]
    of_the_machine = {*tables.OF_THE_MACHINE} & {*result.metrics}
    assert of_the_machine
    assert len(shown) == len(result.metrics) - len(of_the_machine), (
        "every other metric stands in one table"
    )


def test_a_cell_has_the_mean_its_spread_and_the_papers_number(tmp_path):
    main = tables.main_table(analysed(tmp_path, "sop-vs-nsp"))
    line = dict(zip(main.header, main.body[2], strict=True))
    assert line["MLM %"] == "25.0 ± 1.0 (54.0)"
    assert line["SOP %"] == "58.0 (86.5)", "three equal seeds have no spread"
    assert [value(number, "") for number in (1234, 233e6, 1.27e9)] == ["1,234", "233M", "1,270M"]


def test_rows_are_headed_by_the_axes_in_which_they_differ(tmp_path):
    assert tables.main_table(analysed(tmp_path, "depth", 1)).header[0] == "layers"


def test_what_is_missing_is_a_dash_or_said_with_its_reason(tmp_path):
    asked = experiment.named("sop-vs-nsp")
    folder = toy_report(tmp_path / "sop-vs-nsp", asked, 1, full=True)
    result = analysis.read(folder)
    (lost,) = [row for row in tables.main_table(result).body if row[0] == "sop"]
    assert lost[1] == "— (54.0)"
    text = markdown.render(result, None)
    assert "sop, seed 0: the loss is nan at step 3" in text
    assert "so no interval and no verdict" in text
    assert "One seed a row" in text
    said = [words for _, by_kind in claims_of(result) for words in by_kind.values()]
    assert not any("nan" in words.brief + words.evidence for words in said), "p of one seed"


def test_a_claim_has_a_verdict_by_each_kind_of_evidence_and_what_was_not_measured_is_said(tmp_path):
    result = analysed(tmp_path, "sharing")
    said = claims_of(result)
    assert [claim for claim, _ in said] == list(result.experiment.claims)
    claim, words = said[0]
    assert [kind.value for kind in words] == ["loss", "tasks"]
    assert words[Kind.TASKS].word == "not run"
    assert all(name in words[Kind.TASKS].evidence for name in ("MNLI", "QNLI", "not measured"))
    text = markdown.render(result, None)
    assert text.count(markdown.plain(claim.quote)) == 3, "a quote of three claims"


def test_the_answer_is_the_first_whose_claims_are_decided_so_and_one_seed_makes_none(
    full, tmp_path
):
    _, result = full("sop-vs-nsp")
    outcomes = {"holds": Outcome.SUPPORTED, "fails": Outcome.NOT_SUPPORTED}
    for known in result.experiment.answers:
        wanted = {name: outcomes[kind] for kind in outcomes for name in getattr(known, kind)}
        verdicts = [
            replace(verdict, outcome=wanted.get(verdict.claim.short, Outcome.UNDECIDED))
            for verdict in result.verdicts
        ]
        decided = asking(result)
        decided.__dict__["verdicts"] = verdicts
        with_any_size = re.sub(r"\\{.+?\\}", r"[\\d.]+ (%|nats|points)", re.escape(known.say))
        assert re.fullmatch(with_any_size, answer(decided))
    single = analysed(tmp_path, "sop-vs-nsp", 1)
    assert answer(single) not in [known.say for known in single.experiment.answers]


def test_a_sweep_with_tasks_is_answered_by_the_first_or_says_that_it_does_not_count(full):
    _, result = full("sop-vs-nsp")
    sweep, _ = experiment.from_overrides(["dropout=0,0.1"])
    by_task = asking(result, columns=sweep.columns, claims=(), answers=())
    assert re.match(r"\S+ does not count: rows are not clearly above random", answer(by_task))
    by_task.__dict__["summary"] = by_task.summary.assign(counts=True)
    heading = answer(by_task).split(" is ")[0]
    assert heading in [by_task.heading(task) for task in result.frame.tasks]
    # A part of a task's score is no task that the command named.
    tasks = [*result.frame.tasks.values()]
    with_part = replace(result.frame, tasks={**result.frame.tasks, "mlm_accuracy": tasks[0]})
    by_score = replace(asking(by_task, columns=tasks), frame=with_part)
    assert answer(by_score).split(" is ")[0] in [by_score.heading(task) for task in tasks]


def test_a_study_without_answers_says_what_holds(full):
    _, result = full("sop-vs-nsp")
    outcomes = {"order is learnt": Outcome.SUPPORTED, "SOP solves NSP": Outcome.NOT_SUPPORTED}
    first = result.experiment.claims[0]
    claims = [first.model_copy(update={"short": name}) for name in outcomes]
    own = asking(result, claims=claims, answers=())
    own.__dict__["verdicts"] = [
        replace(result.verdicts[0], claim=claim, outcome=outcomes[claim.short]) for claim in claims
    ]
    assert answer(own) == "Order is learnt."


def test_the_main_table_has_the_columns_that_are_asked_for_and_no_other(full):
    _, result = full("sop-vs-nsp")
    own = asking(result, columns=("mnli",), paper=None, claims=())
    assert {*own.main} == {*result.frame.tasks} & {*result.main}
    others = [heading for table in tables.other_tables(own) for heading in table.header]
    assert any(heading.startswith("MLM %") for heading in others)


def test_the_best_row_of_a_task_is_the_highest_one_whichever_had_random_weights(full):
    _, result = full("sop-vs-nsp")
    lowest = result.frame.of("mnli").query("row == 'nsp'")
    random = lowest.assign(row="nsp" + RANDOM, value=34.0)
    numbers = pd.concat([result.frame.numbers, random])
    table = tables.tasks_table(Analysis(result.study, replace(result.frame, numbers=numbers)))
    (line,) = [
        dict(zip(table.header, cells, strict=True)) for cells in table.body if "MNLI" in cells
    ]
    assert (line["random weights %"], line["best row %"]) == ("34.0", "56.5")


def test_text_of_records_is_shown_as_it_is_and_never_followed(tmp_path, empty_figures):
    evil = "[a](javascript:alert(1)) <img src=x onerror=alert(2)> `b` | ![c](d.png) # e"
    folder = toy_report(tmp_path / "sop-vs-nsp", experiment.named("sop-vs-nsp"), 1)
    study = studies.read(folder)
    asked = study.experiment.model_copy(update={"title": evil, "source": evil, "notes": (evil,)})
    points = [
        point.model_copy(
            update={"labels": {"inter_sentence": f"{evil}{place}"}, "command": evil + "``\n- x"}
        )
        for place, point in enumerate(study.points)
    ]
    claims = [claim.model_copy(update={"quote": evil}) for claim in asked.claims]
    grid = {"inter_sentence": {f"{evil}{place}": "sop" for place in range(3)}}
    asked = asked.model_copy(update={"claims": tuple(claims), "grid": grid})
    text = report.write(
        folder,
        analysis.analyse(study.model_copy(update={"experiment": asked, "points": tuple(points)})),
    )
    text = text.read_text()
    page = (folder / report.PAGE).read_text()
    pictures = re.findall("<img[^>]*>", page)
    assert all("onerror" not in picture for picture in pictures)
    assert "<a " not in page
    assert "<script" not in page
    assert "[a](javascript:alert(1))" in re.sub("<[^>]*>", "", page)
    for line in text.splitlines():
        cells = re.sub(r"\\.", "", line)
        assert not re.search(r"\]\((?!learning-curves.png)", re.sub("(`+).*?\\1", "", cells)), line


def test_json_has_the_rows_and_the_verdicts_and_null_for_what_is_unknown(tmp_path):
    content = json.loads(report.as_json("sop-vs-nsp", analysed(tmp_path, "sop-vs-nsp")))
    assert [row["row"] for row in content["rows"]] == ["none", "nsp", "sop"]
    assert content["rows"][2]["scores"]["mlm_accuracy"]["mean"] == 25.0
    assert len(content["verdicts"]) == 9
    assert content["verdicts"][-1]["effect"] is None
