import numpy as np
import pytest
from planted import claim, decide
from records import toy_run

from albert_lab.analysis.verdicts import Verdict
from albert_lab.errors import ConfigError
from albert_lab.studies import experiment as experiments
from albert_lab.studies.experiment import Experiment
from albert_lab.studies.table import Row, RowNames

LESS = claim(
    "interaction",
    row={"sharing": "not-shared"},
    than={"sharing": "all-shared"},
    under={"dropout": "0.1"},
    elsewhere={"dropout": "0"},
)


def study(content) -> Experiment:
    grid = {"sharing": ["not-shared", "all-shared"], "dropout": ["0", "0.1"]}
    return Experiment.model_validate(
        {"name": "toy", "title": "Toy", "source": "none", "grid": grid, "claims": [content]}
    )


def verdict(effect_elsewhere: float, effect_under: float, seeds: int = 4, content=LESS, of_seed: float = 1) -> Verdict:
    """A table of four rows with these effects of not sharing, little noise, and a level that a seed has in all rows."""
    level = 70 + of_seed * np.arange(seeds)
    noise = np.array([-0.1, 0.05, 0.1, -0.05])[:seeds]
    rows = []
    for dropout, effect in (("0", effect_elsewhere), ("0.1", effect_under)):
        for sharing, value in (("not-shared", effect), ("all-shared", 0.0)):
            labels = {"sharing": sharing, "dropout": dropout}
            values = level + value + np.roll(noise, len(rows))
            name = "-".join(labels.values())
            runs = [toy_run(f"{name}-{seed}", seed, {"average": float(item)}) for seed, item in enumerate(values)]
            rows.append(Row(labels, labels, runs, {}))
    return decide(study(content), rows)[0]


@pytest.mark.parametrize(
    ("elsewhere", "under", "decision"),
    [(4, 2, "supported"), (2, 4, "not supported"), (3, 3, "undecided"), (2, -2, "supported")],
)
def test_an_interaction_is_the_difference_of_two_effects(elsewhere, under, decision):
    result = verdict(elsewhere, under)
    assert result.decision == decision
    assert result.effect == pytest.approx(elsewhere - under, abs=1e-9)


def test_what_a_seed_has_in_all_rows_does_not_hide_an_interaction():
    result = verdict(4, 3.5, of_seed=5)
    assert result.decision == "supported"
    assert result.is_paired


def test_one_seed_does_not_decide_an_interaction():
    assert verdict(4, 2, seeds=1).decision == "undecided"


def test_an_interaction_in_words():
    names = RowNames(study(LESS), [])
    check = study(LESS).claims[0].words("points", names)
    assert check == "not-shared above all-shared by less at dropout = 0.1 than at dropout = 0"
    comparison = verdict(4, 2).comparison
    assert comparison is not None
    assert comparison.words(names) == "effect at dropout = 0 − effect at dropout = 0.1"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"than": {"dropout": "0"}}, "row and than name different axes"),
        ({"under": {"sharing": "all-shared"}, "elsewhere": {"sharing": "not-shared"}}, "both name sharing"),
        ({"under": {"dropout": "0"}}, "is compared with itself"),
        ({"under": {"dropout": "0.5"}}, "dropout=0.5 is not among 0, 0.1"),
    ],
)
def test_an_interaction_that_compares_no_two_effects_is_refused(tmp_path, change, said):
    file = tmp_path / "mine.yaml"
    content = {"title": "Toy", "source": "none", "claims": [LESS | change]}
    content["grid"] = {"sharing": ["not-shared", "all-shared"], "dropout": ["0", "0.1"]}
    file.write_text(str(content))  # YAML reads it
    with pytest.raises(ConfigError, match=said):
        experiments.read(file)
