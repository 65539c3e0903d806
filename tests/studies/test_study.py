import json

import pytest
from toy import (
    silent,
    states_of,
    toy_experiment,
    toy_overrides,
    toy_plan,
    train,
    write_corpus,
)
from toy_reports import toy_report

from albert_lab.errors import ConfigError
from albert_lab.studies import study
from albert_lab.studies.plan import plan_study


def test_seeds_that_a_later_command_adds_are_known_whenever_it_runs(corpus, own_home):
    first, later = toy_plan(corpus, "seed=0,1"), toy_plan(corpus, "seed=0,1,2")
    study.begin(first)
    study.write(first.report_folder, study.collect(first, {}, "", silent))
    grown = study.collect(later, {}, "", silent)
    assert grown.first_seeds == (0, 1)
    study.write(later.report_folder, grown)
    assert study.read(later.report_folder).first_seeds == (0, 1)
    other = study.renamed_if_taken(toy_plan(corpus, "seed=0,1,2", "dropout=0.2"), silent)
    assert study.collect(other, {}, "", silent).first_seeds == (0, 1, 2), "another study"


def planned(corpus, *overrides, file=None):
    experiment = toy_experiment(grid={"dropout": [0, 0.1]})
    return plan_study(experiment, toy_overrides(corpus, *overrides), [], file=file)


def test_a_report_is_replaced_by_the_same_question_alone(corpus, own_home, tmp_path):
    first = planned(corpus)
    study.begin(first)
    with pytest.raises(ConfigError, match="no report yet"):
        study.read(first.report_folder)
    more = [
        planned(corpus, "seed=0,1"),
        planned(corpus, "dropout=0"),
        planned(corpus, "machine.threads=2"),
    ]
    assert {study.renamed_if_taken(plan, silent).report_folder for plan in more} == {
        first.report_folder
    }
    texts = write_corpus(tmp_path / "other text", seed=1)
    others = [
        planned(corpus, "batch_size=8"),
        planned(texts),
        planned(corpus, "optimizer.learning_rate=0.1,0.2"),
        planned(corpus, file=tmp_path / "toy.yaml"),
    ]
    said: list[str] = []
    folders = [study.renamed_if_taken(plan, said.append).report_folder for plan in others]
    assert len({first.report_folder, *folders}) == 5
    for line, folder in zip(said, folders, strict=True):
        assert folder.name in line
    study.begin(study.renamed_if_taken(others[0], silent))
    assert (
        study.renamed_if_taken(planned(corpus, "batch_size=8"), silent).report_folder == folders[0]
    ), "again"


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"labels": {"dropout": "0"}, "values": {"dropout": "0"}}, "given twice"),
        ({"scale": "paper"}, "scale=paper"),
        ({"seed": 1}, "seed=1"),
    ],
)
def test_a_point_that_counts_a_run_twice_or_as_another_is_refused(own_home, changes, named):
    folder = toy_report(own_home / "report", toy_experiment(grid={"dropout": ["0", "0.1"]}), 1)
    file = folder / study.STUDY
    content = json.loads(file.read_text())
    content["points"][1] |= changes
    file.write_text(json.dumps(content))
    with pytest.raises(ConfigError, match=named):
        study.read(folder)


@pytest.mark.parametrize(
    "name", ["report.md", "experiment.yaml", "study.json", "learning-curves.png"]
)
def test_a_file_of_the_user_where_a_report_belongs_is_told_before_anything_is_trained(
    corpus, own_home, name
):
    plan = planned(corpus)
    plan.report_folder.mkdir(parents=True)
    (plan.report_folder / name).write_text("mine")
    with pytest.raises(ConfigError, match=name):
        train(plan)
    assert (plan.report_folder / name).read_text() == "mine"
    assert states_of(plan) == ["missing", "missing"]
