"""A toy test of an own check of claims: copy it to test yours."""

import pytest
from planted import EMBEDDING_SIZES, claim, decide, experiment, row, table

from albert_lab import registry
from albert_lab.studies.table import RowNames

HALVED = """
from albert_lab.extend import BaseClaim, Comparison, Grid, Labels, Name, check


@check("half-of")
class HalfOf(BaseClaim):
    row: Labels
    of: Labels

    def rows(self, grid: Grid) -> list[Labels]:
        return [self.row, self.of]

    def comparisons(self, grid: Grid) -> list[Comparison]:
        return [Comparison(((1.0, self.row), (-0.5, self.of)), high=0.0)]

    def words(self, unit: str, name: Name) -> str:
        return f"{name(self.row)} below half of {name(self.of)}"
"""
ASKED = claim("half-of", row=row("64"), of=row("128"))


@pytest.fixture(autouse=True)
def nothing_included():
    with registry.separate():
        yield


@pytest.mark.parametrize(("value", "decision"), [(30, "supported"), (50, "not supported")])
def test_an_own_check_decides_a_claim(tmp_path, value, decision):
    (tmp_path / "own.py").write_text(HALVED)
    registry.include(tmp_path / "own.py")
    values = {label: [80.0, 81.0, 79.0] for label in EMBEDDING_SIZES} | {"64": [value - 1.0, value, value + 1.0]}
    (verdict,) = decide(experiment(ASKED), table(values))
    assert verdict.decision == decision
    assert verdict.claim.words("points", RowNames(experiment(), table(values))) == "E = 64 below half of E = 128"


def test_a_check_that_is_not_included_is_named():
    with pytest.raises(ValueError, match="half-of"):
        experiment(ASKED)


def test_an_invalid_key_of_an_own_check_is_named(tmp_path):
    (tmp_path / "own.py").write_text(HALVED)
    registry.include(tmp_path / "own.py")
    with pytest.raises(ValueError, match="of is missing"):
        experiment({key: value for key, value in ASKED.items() if key != "of"})


def test_own_code_of_a_check_is_no_part_of_a_run(tmp_path):
    from albert_lab.config.compose import load

    (tmp_path / "own.py").write_text(HALVED)
    registry.include(tmp_path / "own.py")
    assert load(["scale=smoke"]).include == ()
