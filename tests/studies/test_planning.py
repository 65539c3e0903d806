import pytest
from toy import toy_overrides, toy_points

from albert_lab.errors import ConfigError
from albert_lab.studies import planning
from albert_lab.studies.experiment import Experiment


def test_a_plan_writes_nothing(corpus, own_home):
    assert len(toy_points(corpus, "embedding_size=4,8", "seed=0,1")) == 4
    assert not list(own_home.iterdir())


def test_rows_that_are_scored_on_different_sets_are_refused_before_any_run(corpus, own_home):
    with pytest.raises(ConfigError, match=r"one table cannot hold these rows.*masking=as-described; masking=official"):
        toy_points(corpus, "masking=as-described,official")


@pytest.mark.parametrize(("seeds", "looks"), [([], (1,)), ([3, 4], (2,)), ([5], (1,))])
def test_the_seeds_of_an_experiment_are_judged_once_and_those_of_the_scale_at_its_looks(corpus, own_home, seeds, looks):
    grid = {"seed": seeds} if seeds else {}
    asked = Experiment.model_validate({"name": "toy", "title": "Toy", "source": "none", "grid": grid})
    overrides = toy_overrides(corpus, "budget.value=2")
    plan = planning.seed_plan(planning.plan(asked, overrides, tasks=[]), overrides)
    assert (plan.seeds, plan.looks) == (tuple(seeds) or (0,), looks)
