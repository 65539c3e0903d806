import pytest

from albert_lab.errors import ConfigError
from albert_lab.studies import experiment

ASKED = "title: a\nsource: b\ncolumns: [mlm_accuracy]"
PAPER_FIGURE = "{figure: 2b, x: steps, curves: [{panel: mlm_accuracy, row: 0.1, points: []}]}"
# Each line has seven of the one before: 7 ** 9 values.
ALIASES = "\n".join(f"{b}: &{b} [{', '.join([f'*{a}'] * 7)}]" for a, b in zip("abcdefgh", "bcdefghi", strict=True))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("title: [", "cannot be read as YAML"),
        ("just words", ": title is missing; source is missing"),
        ("title: a\nsource: b\ngrid: {seed: [0]}\ncolums: [x]", "colums"),
        ("title: a\nsource: b", "grid"),
        *((f"{ASKED}\nname: {name}", "is not a name") for name in ("../x", "/x", "''", ".", "..", "x" * 300)),
        ("title: a\nsource: b\ngrid: {seed: null}", "seed: None gives no values"),
        ("title: a\nsource: b\ngrid: {seed: []}", "seed: [] gives no values"),
        ("title: a\nsource: b\ngrid: {dropout: {a: [0.1, 0.2]}}", "dropout: a: 0.1 is no override KEY=VALUE"),
        ("title: a\nsource: b\ngrid: {sharing: {a: [sharing=groups, seed=5]}}", "sharing=a sets seed"),
        (f"{ASKED}\nfinetuning_seeds: [true]", "finetuning_seeds.0=true"),
        (f"{ASKED}\ngrid: {{dropout: [0]}}\npaper_figure: {PAPER_FIGURE}", "paper_figure: row=0.1 is not among 0"),
        (
            f"{ASKED}\ngrid: {{dropout: [0.1]}}\npaper_figure: {PAPER_FIGURE.replace('mlm_accuracy', 'loss')}",
            "paper_figure: panel=loss is not among mlm_accuracy",
        ),
        (f"{ASKED}\nbeyond_paper: []", "beyond_paper"),
        (
            "title: a\nsource: b\nfixed: [inter_sentence=sop,nsp]\ngrid: {}",
            "mine.yaml: fixed: nsp is no override KEY=VALUE; one with a comma needs quotes",
        ),
        (f"{ASKED}\nfinetuning_seeds: [-1]", "finetuning_seeds.0=-1"),
        (f"{ASKED}\nfinetuning_seeds: [0, 1, 0]", "finetuning_seeds: 0 is given twice"),
        (f"{ASKED}\nfinetuning_seeds: [{2**32}]", "finetuning_seeds.0=4294967296"),
        ("title: a\nsource: b\nfixed: [dropout=0]\ngrid: {dropout: [0, 0.1]}", "fixed: dropout is an axis of the grid"),
        ("title: a\nsource: b\nfixed: [dropout=0, dropout=0.1]\ngrid: {}", "fixed: dropout is set twice"),
        ("title: a\nsource: b\ngrid: {dropout: [0, 0.1, 0]}", "dropout: 0 is given twice"),
        ("title: a\nsource: b\ngrid: {}\ncolumns: [mnli, mnli]", "columns: mnli is given twice"),
        (f"{ASKED}\ngrid: {{seed: [{'9' * 6000}]}}", "cannot be read as YAML"),
        (f"{ASKED}\nx: {'[' * 99}{']' * 99}", "nested more than 64 deep"),
        (f"{ASKED}\na: &a [1, 1, 1, 1, 1, 1, 1]\n{ALIASES}", "more than 100,000 values, with its aliases expanded"),
        (
            f"{ASKED}\nclaims: [{{check: greater, metric: x, row: {{}}, than: .nan, quote: q, section: s}}]",
            "than.float=nan",
        ),
        ("title: a\nsource: b\ngrid: {}\ncolumns: [mnly]", "mine.yaml: columns: mnly is unknown"),
        ("title: a\nsource: b\ngrid: {}\ncolumns: [[mnli]]", "mine.yaml: columns"),
        (
            "title: a\nsource: b\ngrid: {sharing: [all-shared]}\n"
            "paper: {table: t, columns: {mnli: MNLI}, rows: [{sharing: shared, mnli: 1.0}]}",
            "sharing=shared is not among all-shared",
        ),
        (
            "title: a\nsource: b\ngrid: {seed: [0]}\nfigures: [pie]",
            "figures: pie is unknown (allowed: layer-similarity, learning-curves",
        ),
    ],
)
def test_an_invalid_file_is_named_with_its_error(tmp_path, text, message):
    file = tmp_path / "mine.yaml"
    file.write_text(text)
    with pytest.raises(ConfigError, match=r"mine\.yaml") as error:
        experiment.read(file)
    assert message in str(error.value)


def test_a_wrong_value_of_a_list_gives_one_message(tmp_path):
    file = tmp_path / "mine.yaml"
    file.write_text("title: a\nsource: b\ngrid: {}\nfinetuning_seeds: [-1]")
    with pytest.raises(ConfigError, match=r"mine\.yaml: finetuning_seeds\.0=-1: [^;]*\Z"):
        experiment.read(file)
