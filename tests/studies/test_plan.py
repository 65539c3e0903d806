import pytest
from toy import toy_overrides, toy_plan

from albert_lab.studies.experiment import Experiment
from albert_lab.studies.plan import plan_study


def test_a_plan_writes_nothing(corpus, own_home):
    assert len(toy_plan(corpus, "embedding_size=4,8", "seed=0,1").points) == 4
    assert not list(own_home.iterdir())


def test_rows_that_are_scored_on_different_sets_are_named_before_any_run(corpus, own_home, capsys):
    assert len(toy_plan(corpus, "masking=as-described,official").rows) == 2
    said = capsys.readouterr().err
    assert "scores on held-out text are not compared between these rows" in said
    assert "masking=as-described; masking=official" in said
    toy_plan(corpus, "dropout=0,0.1")
    assert "not compared" not in capsys.readouterr().err


@pytest.mark.parametrize(("seeds", "looks"), [([], (1,)), ([3, 4], (2,)), ([5], (1,))])
def test_the_seeds_of_an_experiment_are_judged_once_and_those_of_the_scale_at_its_looks(corpus, own_home, seeds, looks):
    grid = {"seed": seeds} if seeds else {}
    asked = Experiment.model_validate({"name": "toy", "title": "Toy", "source": "none", "grid": grid})
    seed_plan = plan_study(asked, toy_overrides(corpus, "budget.value=2"), tasks=[]).seed_plan
    assert (seed_plan.seeds, seed_plan.looks) == (tuple(seeds) or (0,), looks)
