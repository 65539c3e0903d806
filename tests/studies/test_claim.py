import pytest
from omegaconf import OmegaConf

from albert_lab.errors import ConfigError
from albert_lab.studies import experiment
from albert_lab.studies.checks import Monotone
from albert_lab.studies.experiment import Experiment

GRID = {"sharing": ["all-shared", "not-shared"], "embedding_size": [768, 64, 128]}
GREATER = (
    "{quote: q, section: '4.5', metric: average, check: greater,"
    " row: {sharing: not-shared, embedding_size: 64}, than: {sharing: all-shared, embedding_size: 64}}"
)
ROW = "{sharing: all-shared, embedding_size: 64}"


def read(tmp_path, claim: str) -> Experiment:
    file = tmp_path / "mine.yaml"
    file.write_text(f"title: Mine\nsource: none\ngrid: {GRID}\nclaims: [{claim}]\n")
    return experiment.read(file)


@pytest.mark.parametrize(
    ("right", "wrong", "said"),
    [
        (
            "metric: average",
            "metric: averge",
            "metric=averge is no column of the table of runs (did you mean average?)",
        ),
        (
            "row: {sharing: not-shared",
            "row: {sharing: unshared",
            "sharing=unshared is not among all-shared, not-shared",
        ),
        ("row: {sharing:", "row: {shraing:", "shraing is no axis of the table (allowed: sharing, embedding_size)"),
        (", embedding_size: 64}}", "}}", "leaves embedding_size open: name one of 768, 64, 128"),
        ("check: greater", "check: grater", "grater"),
        ("quote: q, ", "", "quote is missing"),
        ("quote: q", "quote: ''", "quote"),
        ("quote: q", "quote: q, margin: 1", "margin"),
    ],
)
def test_a_claim_that_does_not_fit_the_table_is_refused_by_name(tmp_path, right, wrong, said):
    assert right in GREATER
    with pytest.raises(ConfigError, match=r"mine\.yaml") as error:
        read(tmp_path, GREATER.replace(right, wrong, 1))
    assert said in str(error.value)


@pytest.mark.parametrize(
    ("claim", "said"),
    [
        ("check: peak-at, axis: embedding_size, at: 99, where: {sharing: all-shared}", "at=99 is not among 768, 64"),
        ("check: peak-at, axis: size, at: 64", "size is no axis of the table"),
        ("check: peak-at, axis: embedding_size, at: 64", "leaves sharing open"),
        ("check: monotone, axis: sharing, direction: rising, where: {embedding_size: 64}", "is no number"),
        ("check: monotone, axis: embedding_size, direction: rising, where: {embedding_size: 64}", "where fixes"),
        ("check: ratio, row: {sharing: all-shared, embedding_size: 64}, to: {}", "a ratio needs low, high or both"),
        ("check: ratio, row: {}, to: {}, low: 2, high: 1", "low=2 is not below high=1"),
        ("check: within, row: {}, of: {}, margin: 0", "margin"),
        (f"check: greater, row: {ROW}, than: {ROW}", "is compared with itself"),
        (f"check: ordered, order: [{ROW}, {ROW}]", "is compared with itself"),
        (f"check: greater, row: {ROW}, than: 101", "average is in percent, which never reaches 101"),
    ],
)
def test_a_check_that_makes_no_sense_is_refused(tmp_path, claim, said):
    with pytest.raises(ConfigError) as error:
        read(tmp_path, f"{{quote: q, section: '4.4', metric: average, {claim}}}")
    assert said in str(error.value)


def test_a_metric_may_be_a_score_a_task_or_a_quantity_of_a_run(tmp_path):
    for metric in ("sop_accuracy", "mnli", "average", "tokens_per_second", "parameters"):
        assert read(tmp_path, GREATER.replace("average", metric)).claims[0].metric == metric


def test_an_axis_is_sorted_by_number_regardless_of_the_grids_order(tmp_path):
    claim = "{quote: q, section: '4.4', metric: average, check: monotone, axis: embedding_size, direction: rising,"
    result = read(tmp_path, claim + " where: {sharing: all-shared}}")
    assert isinstance(result.claims[0], Monotone)
    assert [row["embedding_size"] for row in result.claims[0].rows(result.grid)] == ["64", "128", "768"]


@pytest.mark.parametrize(("word", "kept"), [("rises", "rising"), ("falls", "falling")])
def test_a_claim_of_ones_own_needs_no_section_and_may_say_that_a_metric_rises(word, kept, tmp_path):
    claim = "{quote: q, metric: average, check: monotone, axis: embedding_size,"
    result = read(tmp_path, f"{claim} direction: {word}, where: {{sharing: all-shared}}}}").claims[0]
    assert isinstance(result, Monotone)
    assert (result.section, result.direction) == (None, kept)


def test_claims_are_written_into_a_report_and_read_back_the_same(tmp_path):
    for name in ("sop-vs-nsp", "embedding-size", "sharing"):
        packaged = experiment.named(name)
        file = tmp_path / f"{name}.yaml"
        content = packaged.model_dump(mode="json", exclude={"name"})
        file.write_text(OmegaConf.to_yaml(OmegaConf.create(content)))
        assert experiment.read(file).claims == packaged.claims
