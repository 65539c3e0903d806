from dataclasses import replace
from types import SimpleNamespace

import pytest
from command import here
from records import toy_record
from toy import toy_overrides, toy_plan

from albert_lab.cli import train
from albert_lab.runs import results
from albert_lab.studies import experiment
from albert_lab.studies.execute import Options
from albert_lab.studies.plan import plan_study
from albert_lab.studies.seed_plan import SeedPlan

PLAN = SeedPlan(seeds=tuple(range(8)), looks=(3, 5, 8))


@pytest.fixture
def seen(monkeypatch, corpus, own_home):
    """The looks that a command trains, and how many claims are open after each."""
    state = SimpleNamespace(looks=[], open=[], start=1, code=0, is_done=True)
    state.plan = replace(toy_plan(corpus), seed_plan=PLAN)

    def train_look(plan, look, _options):
        state.looks.append(PLAN.looks[look - 1])
        verdicts = [SimpleNamespace(is_open=True)] * state.open.pop(0)
        return state.code, plan, SimpleNamespace(verdicts=verdicts) if state.is_done else None

    monkeypatch.setattr(train, "_train_look", train_look)
    monkeypatch.setattr("albert_lab.studies.study.announce", lambda _folder, _points, plan: (plan, state.start))
    return state


def test_a_study_ends_at_the_look_where_no_claim_is_open(seen):
    seen.open = [2, 0]
    code, result = train.train_study(seen.plan, Options())
    assert code == 0
    assert result is not None
    assert seen.looks == [3, 5]


def test_a_study_ends_at_its_last_look_whatever_is_open(seen):
    seen.open = [1, 1, 1]
    train.train_study(seen.plan, Options())
    assert seen.looks == [3, 5, 8]


def test_looks_ends_a_study_earlier(seen):
    seen.open = [1]
    train.train_study(seen.plan, Options(), most=1)
    assert seen.looks == [3]


def test_a_study_does_not_go_back_to_an_earlier_look(seen):
    seen.start, seen.open = 2, [1]
    train.train_study(seen.plan, Options(), most=1)
    assert seen.looks == [5]


@pytest.mark.parametrize(("code", "is_done"), [(3, True), (130, True), (0, False)])
def test_a_look_that_failed_or_was_left_is_the_last(seen, code, is_done):
    seen.code, seen.is_done, seen.open = code, is_done, [1]
    assert train.train_study(seen.plan, Options())[0] == code
    assert seen.looks == [3]


def test_a_command_adds_seeds_while_they_can_decide_a_claim_and_says_at_which_look_it_stands(
    corpus, own_home, tmp_path, empty_figures
):
    file = tmp_path / "mine.yaml"
    file.write_text(
        "title: Mine\nsource: none\ngrid: {sharing: [all-shared]}\ncolumns: [mlm_accuracy]\n"
        "claims: [{quote: many, section: '1', metric: mlm_accuracy, check: greater,"
        " row: {sharing: all-shared}, than: 30}]\n"
    )
    overrides = toy_overrides(corpus, "scale.seeds=[0,1,2,3,4]", "scale.looks=[3,5]")
    accuracies = [33.2, 36.0, 40.0, 39.0, 37.0]
    plan = plan_study(experiment.read(file), overrides)
    for planned, mlm in zip(plan.points, accuracies, strict=True):
        planned.run.folder.mkdir(parents=True)
        results.write(planned.run.folder, toy_record(planned.run.config, name=planned.run.name, mlm=mlm))
    command = ["run", str(file), *overrides]
    first = here(*command, "--looks", "1")
    assert "Look 1 of 2 (planned at 3, 5 seeds)" in first.stdout
    assert "undecided" in first.stdout
    both = here(*command)
    assert "look 2 of 2, 5 seeds: more seeds can decide 1 claim" in both.stderr
    assert "Look 2 of 2" in both.stdout
    result = here(*command, "seed=0,1,2,3")
    assert "**Without a plan**: its runs were judged before, at 3 seeds." in result.stdout


def test_more_looks_than_are_planned_are_refused(corpus, own_home):
    overrides = toy_overrides(corpus, "scale.seeds=[0,1,2,3,4]", "scale.looks=[3,5]")
    result = here("sop-vs-nsp", *overrides, "--looks", "9", "--dry-run")
    assert (result.returncode, result.stdout) == (2, "")
    assert "--looks 9: more than are planned (allowed: 1 to 2)" in result.stderr
    single = here("sop-vs-nsp", *overrides, "seed=0,1,2", "--looks", "2", "--list")
    assert "(allowed: 1)" in single.stderr
