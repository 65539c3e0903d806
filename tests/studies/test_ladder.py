import json

import numpy as np
import pytest
from command import here
from records import toy_record
from toy import toy_overrides

from albert_lab import paths
from albert_lab.cost.counts import count_parameters, count_training_flops
from albert_lab.cost.rates import Rates
from albert_lab.errors import ConfigError
from albert_lab.runs import reported
from albert_lab.runs.reported import ReportedRun
from albert_lab.studies import ladder, ladder_cost
from albert_lab.studies.experiment import named
from albert_lab.studies.plan import report_place
from albert_lab.studies.prices import cost_of


def toy_file(tmp_path, **more):
    content = {"title": "Toys", "predict": ["scale=paper"], "rungs": {"low": [], "high": {"budget": 2}}} | more
    file = tmp_path / "toy-ladder.yaml"
    file.write_text(json.dumps(content))
    return ladder.read(str(file))


def planned(corpus, of_rungs, *overrides, experiment="sop-vs-nsp"):
    return ladder.plan_rungs(named(experiment), of_rungs, toy_overrides(corpus, *overrides), [])


@pytest.mark.parametrize("name", ladder.known())
def test_every_ladder_of_the_package_can_be_read_and_has_a_place_far_above(name):
    assert ladder.place_of_prediction(ladder.read(name)) > 1e20


def test_a_ladder_that_is_not_there_is_named_with_those_that_are():
    with pytest.raises(ConfigError, match=r"--along sizes: no such ladder \(allowed: size, smoke, tokens"):
        ladder.read("sizes")


def test_an_unknown_key_of_a_ladder_is_named_with_its_file(tmp_path):
    with pytest.raises(ConfigError, match=r"toy-ladder.yaml: .*tokens"):
        toy_file(tmp_path, tokens=3)


def test_tokens_are_in_proportion_to_the_parameters_of_one_model_for_all_rows(corpus):
    result = planned(corpus, ladder.read("smoke"), "seed=0", experiment="sharing")
    budgets = [{item.point.config.budget.value for item in rung.points} for rung in result]
    assert all(len(values) == 1 for values in budgets)
    shared = [
        next(
            count_parameters(item.point.config).total
            for item in rung.points
            if item.point.row == {"embedding_size": "768", "sharing": "all-shared"}
        )
        for rung in result
    ]
    assert [values.pop() for values in budgets] == [round(0.1 * size) for size in shared]


def test_a_budget_is_a_multiple_of_that_of_the_configuration(tmp_path, corpus):
    low, high = planned(corpus, toy_file(tmp_path), "budget.value=10")
    assert {item.point.config.budget.value for item in low.points} == {10}
    assert {item.point.config.budget.value for item in high.points} == {20}


def test_rows_below_the_least_value_are_left_out_of_a_rung(tmp_path, corpus):
    rungs = {"low": ["model.hidden_size=24"], "high": ["model.hidden_size=48"]}
    values = {"embedding_size": {f"H/{n}": [f"embedding_size=${{hidden_over:{n}}}"] for n in (1, 2, 4)}}
    result = toy_file(tmp_path, rungs=rungs, values=values, at_least={"embedding_size": 12})
    low, high = planned(corpus, result, "sharing=all-shared", experiment="embedding-size")
    assert [item.point.row["embedding_size"] for item in low.points] == ["H/1", "H/2"]
    assert [item.point.config.embedding_size for item in high.points] == [48, 24, 12]
    chosen = planned(corpus, result, "embedding_size=H/1,H/2", "sharing=all-shared", experiment="embedding-size")
    assert [item.point.config.embedding_size for item in chosen[1].points] == [48, 24]


def test_a_setting_of_the_rungs_cannot_be_given(corpus):
    with pytest.raises(ConfigError, match=r"model.hidden_size=48: the rungs of the ladder smoke set this key"):
        planned(corpus, ladder.read("smoke"), "model.hidden_size=48")


def test_a_single_row_is_refused(corpus):
    with pytest.raises(ConfigError, match="rung h24 has a single row"):
        planned(corpus, ladder.read("smoke"), "inter_sentence=sop")


def test_the_order_is_all_rungs_upward_with_the_seeds_of_a_look_then_those_of_the_next(corpus):
    rungs = planned(corpus, ladder.read("smoke"), "scale.seeds=[0,1,2]", "scale.looks=[2,3]")
    names = [rung.name for rung in rungs]
    order = [(rung.name, seed) for rung, seed in ladder.in_order(rungs)]
    assert ladder.looks_of(rungs) == (2, 3)
    assert order == [(name, seed) for name in names for seed in (0, 1)] + [(name, 2) for name in names]


def test_seeds_of_the_users_own_are_a_single_look_even_if_they_are_those_of_the_scale(corpus):
    assert ladder.looks_of(planned(corpus, ladder.read("smoke"), "seed=0,1,2,3")) == (4,)
    own = planned(corpus, ladder.read("smoke"), "scale.seeds=[0,1,2]", "scale.looks=[2,3]", "seed=0,1,2")
    assert ladder.looks_of(own) == (3,)


def test_the_first_look_has_its_own_seeds_and_keeps_the_plan_of_all_looks(corpus):
    whole = planned(corpus, ladder.read("smoke"), "scale.seeds=[0,1,2]", "scale.looks=[2,3]")
    first = [rung.until(1) for rung in whole]
    assert [rung.seeds for rung in first] == [[0, 1]] * 4
    assert ladder.looks_of(first) == (2, 3)
    assert [rung.until(None).seeds for rung in whole] == [[0, 1, 2]] * 4


def test_hours_take_the_lower_rungs_first_and_each_with_all_seeds_of_a_look(corpus):
    rungs = planned(corpus, ladder.read("smoke"), "scale.seeds=[0,1,2,3]", "scale.looks=[2,3,4]")
    known = Rates("rtx4090")
    h24, h36, h48, h72 = (cost_of(rung.of_seed(0), known).all_seconds for rung in rungs)

    def chosen(seconds):
        return {rung.name: rung.seeds for rung in ladder_cost.within(rungs, 1.001 * seconds / 3600, 1, known)}

    assert chosen(2 * h24 + 2 * h36 + 1.5 * h24) == {"h24": [0, 1, 2], "h36": [0, 1]}
    assert chosen(2 * (h24 + h36 + h48 + h72)) == {"h24": [0, 1], "h36": [0, 1], "h48": [0, 1], "h72": [0, 1]}
    assert ladder_cost.within(rungs, 0.0, 1, known) == []


def test_a_rung_whose_first_look_does_not_fit_has_no_seeds_of_a_later_one(corpus):
    rungs = planned(corpus, ladder.read("smoke"), "scale.seeds=[0,1,2,3]", "scale.looks=[3,4]")
    known = Rates("rtx4090")
    h24, h36 = (cost_of(rung.of_seed(0), known).all_seconds for rung in rungs[:2])
    hours = 1.001 * (3 * h24 + h24 + h36) / 3600
    assert [(rung.name, rung.seeds) for rung in ladder_cost.within(rungs, hours, 1, known)] == [("h24", [0, 1, 2, 3])]


def test_hours_that_are_too_few_for_one_look_are_refused_with_what_it_takes(corpus):
    rungs = planned(corpus, ladder.read("smoke"), "seed=0,1,2")
    with pytest.raises(
        ConfigError, match=r"--hours 1e-09: too few for the 3 seeds of the first look .*, h24, which take"
    ):
        ladder_cost.within(rungs, 1e-9, 1, Rates("rtx4090"))


def test_nothing_is_trained_in_no_hours_so_there_is_nothing_to_price(corpus, own_home):
    refused = here("ladder", "sop-vs-nsp", *toy_overrides(corpus), "--along", "smoke", "--hours", "0", "--dry-run")
    assert refused.returncode == 2
    assert "--dry-run and --hours 0" in refused.stderr


def test_a_dry_run_expects_intervals_by_the_spread_of_runs_in_published_reports(
    corpus, own_home, monkeypatch, tmp_path
):
    monkeypatch.setenv("ALBERT_LAB_PUBLISHED", str(tmp_path / "published"))
    overrides = ("seed=0,1,2", "inter_sentence=none,sop")
    rng = np.random.default_rng(0)
    for rung in planned(corpus, ladder.read("smoke"), *overrides):
        folder = paths.published() / report_place(rung.plan.config) / "sop-vs-nsp"
        for item in rung.points:
            record = toy_record(item.point.config, name=item.run.name, mlm=25 + rng.normal())
            flops = {"train_flops_per_token": count_training_flops(item.point.config)}
            reported.write(folder, ReportedRun(record=record.model_copy(update=flops)))
    done = here("ladder", "sop-vs-nsp", *toy_overrides(corpus, *overrides), "--along", "smoke", "--dry-run", "--json")
    (note,) = [note for note in json.loads(done.stdout)["notes"] if note.startswith("Expected interval")]
    assert note.startswith("Expected interval of the slope of sop − none over 4 rungs: ± ")
    assert "measured spread of 0." in note


def test_a_ladder_is_priced_climbed_and_reported_again_without_training(corpus, own_home, runs_here, empty_figures):
    arguments = (
        "ladder",
        "sop-vs-nsp",
        *toy_overrides(corpus, "inter_sentence=none,sop", "scale.seeds=[0,1]", "scale.looks=[1,2]"),
        "--along",
        "smoke",
        "--looks",
        "1",
    )
    dry = json.loads(here(*arguments, "--dry-run", "--json").stdout)
    assert [row["runs"] for row in dry["rows"]] == [2, 2, 2, 2]
    assert "Order: all rungs from the lowest up, with 1 seed." in dry["notes"]
    done = here(*arguments)
    assert done.returncode == 0, done.stderr
    assert "MLM: " in done.stdout
    assert "sop − none" in done.stdout
    (folder,) = paths.reports().glob("*/ladder-sop-vs-nsp-smoke")
    text = (folder / "report.md").read_text()
    assert "8 runs. Looks are planned at 1 and 2 seeds." in text
    assert "Missing runs" not in text
    again = here(*arguments, "--hours", "0")
    assert again.returncode == 0, again.stderr
    assert again.stdout == done.stdout
    assert here("report", str(folder)).returncode == 0
    assert (folder / "report.md").read_text().count("nats per token") == text.count("nats per token")


def test_the_order_of_a_ladder_that_hours_cut_names_the_looks_of_the_whole_one(corpus):
    rungs = planned(corpus, ladder.read("smoke"), "scale.seeds=[0,1,2]", "scale.looks=[2,3]")
    known = Rates("rtx4090")
    one = cost_of(rungs[0].of_seed(0), known).all_seconds
    part = ladder_cost.within(rungs, 1.001 * 2 * one / 3600, 1, known)
    assert [rung.seeds for rung in part] == [[0, 1]]
    (order,) = [note for note in ladder_cost.costs(part, ladder.looks_of(rungs), known).notes if "Order" in note]
    assert order.endswith("with 2, then 3 seeds.")
