import pytest
from pydantic import ValidationError

from albert_lab.studies import study
from albert_lab.studies.seed_plan import SeedPlan
from albert_lab.studies.study import StudyPoint

PLAN = SeedPlan(seeds=tuple(range(8)), looks=(3, 5, 8))


def fixed(*seeds: int) -> SeedPlan:
    """The plan of a command that gives its seeds: a single look."""
    return SeedPlan(seeds=seeds, looks=(len(seeds),))


def points(*seeds: int, state: str = "done", run: str = "run") -> list[StudyPoint]:
    same = {"values": {}, "labels": {}, "state": state, "scale": "smoke", "corpus": "sotu", "command": "albert-lab toy"}
    return [StudyPoint.model_validate({"seed": seed, "run": f"{run}{seed}"} | same) for seed in seeds]


@pytest.mark.parametrize("looks", [(), (3, 5), (5, 3, 8), (3, 3, 8), (0, 8)])
def test_looks_rise_to_the_number_of_seeds(looks):
    with pytest.raises(ValidationError, match="rising numbers of seeds"):
        SeedPlan(seeds=PLAN.seeds, looks=looks)


@pytest.mark.parametrize(("seeds", "look"), [(1, 1), (3, 1), (4, 2), (5, 2), (8, 3), (9, 3)])
def test_seeds_belong_to_the_first_look_with_as_many(seeds, look):
    assert PLAN.look_of(seeds) == look


def test_the_next_look_of_a_plan_is_no_unplanned_one():
    assert PLAN.after(PLAN, judged=[0, 1, 2]) == PLAN


def test_seeds_added_by_a_command_after_a_look_are_unplanned():
    assert fixed(0, 1, 2, 3, 4).after(fixed(0, 1, 2), judged=[0, 1, 2]).unplanned == (3,)
    assert fixed(*range(10)).after(PLAN, judged=[0, 1, 2, 3, 4]).unplanned == (3, 5)


def test_seeds_of_a_report_without_a_plan_are_unplanned_except_at_a_look_of_the_plan():
    assert PLAN.after(None, judged=[0, 1, 2, 3]).unplanned == (4,)
    assert PLAN.after(None, judged=[0, 1, 2]).unplanned == ()


def test_what_was_unplanned_stays_so():
    once = fixed(0, 1, 2, 3).after(fixed(0, 1, 2), judged=[0, 1, 2])
    assert once.after(once, judged=[0, 1, 2, 3]).unplanned == (3,)
    assert fixed(*range(6)).after(once, judged=[0, 1, 2, 3]).unplanned == (3, 4)


def test_fresh_seeds_confirm_a_result_with_a_plan_of_their_own():
    assert fixed(5, 6, 7).after(PLAN, judged=[]) == fixed(5, 6, 7)


def test_a_plan_is_written_before_the_first_run(tmp_path):
    plan, look = study.announce(tmp_path, points(*range(8), state="not started"), PLAN)
    assert (plan, look) == (PLAN, 1)
    written = (tmp_path / study.STUDY).read_text()
    assert '"looks": [' in written
    assert written.count('"run"') == 3


def test_a_study_goes_on_at_the_look_where_its_report_stands(tmp_path):
    study.announce(tmp_path, points(0, 1, 2, 3, 4), SeedPlan(seeds=(0, 1, 2, 3, 4), looks=(5,)))
    content = (tmp_path / study.STUDY).read_text()
    assert study.announce(tmp_path, points(*range(8)), PLAN)[1] == 1  # another plan begins at its first look
    (tmp_path / study.STUDY).write_text(content.replace('"looks": [\n   5\n  ]', '"looks": [\n   3,\n   5\n  ]'))
    plan = SeedPlan(seeds=(0, 1, 2, 3, 4), looks=(3, 5))
    assert study.announce(tmp_path, points(0, 1, 2, 3, 4), plan) == (plan, 2)
    assert study.announce(tmp_path, points(0, 1, 2, 3, 4, run="other"), plan)[1] == 1
    (tmp_path / study.STUDY).write_text("{")
    assert study.announce(tmp_path, points(0, 1, 2, 3, 4), plan) == (plan, 1)
