import pytest
from toy import toy_points

from albert_lab.errors import ConfigError


def test_a_plan_writes_nothing(corpus, own_home):
    assert len(toy_points(corpus, "embedding_size=4,8", "seed=0,1")) == 4
    assert not list(own_home.iterdir())


def test_rows_that_are_scored_on_different_sets_are_refused_before_any_run(corpus, own_home):
    with pytest.raises(ConfigError, match=r"one table cannot hold these rows.*masking=as-described; masking=official"):
        toy_points(corpus, "masking=as-described,official")
