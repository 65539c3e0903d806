import pytest

from albert_lab.studies import workload
from albert_lab.studies.workload import Work


def test_places_give_later_work_in_units_of_each_runs_budget():
    works = [Work(10, 10, 5), Work(20, 5, 0), Work(10, 10, 10)]
    assert workload.places(works, jobs=1) == ["1/3:0.5:2.5", "2/3:0:1", "3/3:1:0"]
    assert workload.places(works, jobs=2)[0] == "1/3:0.5:1.25"
    assert works[0].total == pytest.approx(15)
