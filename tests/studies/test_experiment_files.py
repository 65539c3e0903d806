import pytest

from albert_lab.errors import ConfigError
from albert_lab.studies import experiment

ASKED = "title: a\nsource: b\n"
COLUMNS = f"{ASKED}grid: {{seed: [0]}}\ncolumns: [mlm_accuracy]\n"


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("title: [", "YAML"),
        (ASKED, "grid"),
        (f"{ASKED}grid: {{seed: [0]}}\ncolums: [x]", "colums"),
        (f"{COLUMNS}name: ../x", "../x"),
        (f"{ASKED}grid: {{dropout: [0, 0.1, 0]}}", "dropout"),
        (f"{ASKED}grid: {{dropout: {{' ': 0}}}}", "grid.dropout"),
        (f"{ASKED}grid: {{dropout: {{1: '0', '1': '0.1'}}}}", "the same text"),
        (f"{ASKED}fixed: [dropout=0]\ngrid: {{dropout: [0, 0.1]}}", "dropout is given twice"),
        (f"{ASKED}grid: {{}}\ncolumns: [mnly]", "columns=mnly"),
        (
            f"{ASKED}grid: {{sharing: [all-shared]}}\n"
            "paper: {table: t, columns: {mnli: MNLI}, rows: [{sharing: shared, mnli: 1.0}]}",
            "sharing=shared",
        ),
    ],
)
def test_an_invalid_file_is_named_with_its_key(tmp_path, text, key):
    file = tmp_path / "mine.yaml"
    file.write_text(text)
    with pytest.raises(ConfigError, match=r"mine\.yaml") as error:
        experiment.read(file)
    assert key in str(error.value)
