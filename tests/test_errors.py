from pathlib import Path

import pytest

from albert_lab.errors import ConfigError, DamagedFileError, MissingDataError, within


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (ConfigError("bad"), ConfigError),
        (MissingDataError("gone"), MissingDataError),
        (DamagedFileError(Path("a.json"), "is no JSON"), DamagedFileError),
    ],
)
def test_an_error_keeps_its_kind_and_gets_its_place(error, kind):
    placed = within("sharing", error)
    assert type(placed) is kind
    assert str(placed) == f"sharing: {error}"
