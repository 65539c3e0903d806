import json
from dataclasses import replace

import pytest
from toy import toy_plan

from albert_lab.model.counts import count_training_flops
from albert_lab.runs.finetunings import Finetuning
from albert_lab.studies import prices
from albert_lab.studies.prices import price, time_steps
from albert_lab.tasks.task import load_task
from albert_lab.terminal.plans import in_words

SECONDS_OF_TOKEN = 1e-5


@pytest.mark.parametrize(
    "overrides", [[], ["sharing=not-shared", "inter_sentence=none"], ["position_encoding=rope"]]
)
def test_flops_are_those_that_the_model_is_counted_to_take(corpus, own_home, overrides):
    plan = toy_plan(corpus, "budget.value=10", *overrides)
    config, found = plan.config, price([plan])
    positions = 10 * config.batch_size * config.max_sequence_length
    assert found.flops == pytest.approx(positions * count_training_flops(config), rel=0.05)


def seconds_of(plan) -> float:
    return price([plan]).seconds or 0.0


@pytest.fixture
def instant_timing(monkeypatch):
    """The timing of steps prints a fixed time, after a line of own code."""
    printed = f"own code\n{SECONDS_OF_TOKEN}\n"
    monkeypatch.setattr(prices.subprocess, "check_output", lambda *_, **__: printed)


@pytest.mark.usefixtures("instant_timing")
def test_time_is_that_of_tokens_in_training_evaluation_and_fine_tuning_at_the_timed_speed(
    corpus, own_home
):
    plan = toy_plan(corpus, "budget.value=1000", "machine.threads=1")
    config = plan.config
    assert "FLOPs (no speed known for cpu)" in in_words(price([plan]))
    time_steps(plan.points, 2)
    of_training = 1000 * config.batch_size * config.max_sequence_length * SECONDS_OF_TOKEN
    assert seconds_of(plan) == pytest.approx(of_training / 2, rel=0.05), "two at a time"
    more = toy_plan(corpus, "budget.value=1000", "evaluation.num_pairs=9000")
    passes = 6 * 8936 * config.max_sequence_length * SECONDS_OF_TOKEN / 2
    added = seconds_of(more) - seconds_of(plan)
    assert 0.15 * passes < added < 0.4 * passes, "a forward pass, of the three parts of a step"
    task = load_task("mnli")
    tuned = replace(plan.points[0], missing=(Finetuning(plan.points[0].run, task, 0),))
    asked = task.fitted(config)
    tokens = asked.steps * asked.batch_size * asked.max_sequence_length
    added = seconds_of(replace(plan, points=(tuned,))) - seconds_of(plan)
    assert added == pytest.approx(tokens * SECONDS_OF_TOKEN / 2, rel=0.3)
    assert price([toy_plan(corpus, "machine.device=auto")], "--gres=gpu:1").device == "cuda"


@pytest.mark.usefixtures("instant_timing")
def test_the_speed_is_that_of_the_nearest_width_and_a_price_says_if_it_is_another_one(
    corpus, own_home
):
    wide = toy_plan(corpus, "model.hidden_size=96")
    for width in (48, 384):
        time_steps(toy_plan(corpus, f"model.hidden_size={width}").points, 1)
    assert price([wide]).speed_of == 48
    assert "rough: from steps with H = 48" in in_words(price([wide]))
    time_steps(wide.points, 1)
    assert price([wide]).speed_of is None
    (own_home / "speeds.json").write_text("{")
    assert price([wide]).seconds is None, "a damaged file is as none"


def test_a_study_is_timed_by_its_own_steps_and_goes_on_where_that_fails(
    corpus, own_home, monkeypatch
):
    plan = toy_plan(corpus, "embedding_size=4,8,16")
    with monkeypatch.context() as slow:
        slow.setattr(prices, "_LONGEST_TIMING", 0.01)
        time_steps(plan.points, 1)
        assert price([plan]).seconds is None
    time_steps(plan.points, 1)
    ((width, (speed, start)),) = json.loads((own_home / "speeds.json").read_text())["cpu"].items()
    assert (width, speed > 0, start > 2) == ("48", True, True), "two seconds of steps"
    (folder,) = (own_home / "runs").iterdir()
    assert folder == plan.points[2].run.folder, "the largest model"
    assert [file.name for file in folder.iterdir()] == ["run.yaml"]
