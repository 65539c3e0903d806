import numpy as np
import pytest
from toy import toy_overrides

from albert_lab.errors import ConfigError
from albert_lab.figures import growth as figure
from albert_lab.studies import growth
from albert_lab.studies.growth import StudyGrowth, StudyTime


def test_times_are_told_beside_those_of_one_run_at_a_time():
    alone = [StudyTime(runs, 1, 10.0 * runs) for runs in (1, 2, 4)]
    pairs = [StudyTime(1, 2, 10.0), StudyTime(2, 2, 10.0), StudyTime(4, 2, 20.0)]
    text = " ".join(StudyGrowth((*alone, *pairs), ("scale=smoke",)).as_text().split())
    assert "1 at a time: from 1 to 4 runs the time of a study grows with the power 1.00" in text
    assert "2 at a time: from 1 to 4 runs the time of a study grows with the power 0.50" in text
    assert "4 2 20.0 5.0 0.50" in text


def test_the_figure_has_a_line_for_each_number_of_simultaneous_runs_and_one_in_proportion():
    times = (StudyTime(1, 1, 10.0), StudyTime(2, 1, 18.0), StudyTime(1, 2, 12.0), StudyTime(2, 2, 11.0))
    (panel,) = figure.draw_studies(StudyGrowth(times, ())).axes
    drawn = {line.get_label(): np.asarray(line.get_ydata()).tolist() for line in panel.get_lines()}
    assert drawn == {
        "one run at a time": [10.0, 18.0],
        "at most 2 runs at a time": [12.0, 11.0],
        "in proportion to the runs": [10.0, 20.0],
    }


def test_a_seed_is_refused():
    with pytest.raises(ConfigError, match="seed=3: the runs of these studies differ in their seed"):
        growth.measure(["scale=smoke", "seed=3"], say=lambda _line: None)


def test_whole_studies_are_timed_and_leave_nothing_behind(corpus, own_home):
    said: list[str] = []
    settings = toy_overrides(corpus, "budget.value=2")
    found = growth.measure(settings, say=said.append, runs=(1,), jobs=(1,))
    (only,) = found.times
    assert (only.runs, only.jobs) == (1, 1)
    assert only.seconds > 0
    assert said == ["studies: preparing the text", f"studies: 1 run, at most 1 at a time: {only.seconds:,.1f} s"]
    assert not list(own_home.rglob("*"))


def test_a_study_that_fails_ends_the_measurement_with_its_last_line(corpus):
    settings = toy_overrides(corpus, "corpus.dev_share=0.0001")
    with pytest.raises(ConfigError, match=r"^a study with seed=0 ended with exit code 2: .* none in the dev split"):
        growth.measure(settings, say=lambda _line: None)
