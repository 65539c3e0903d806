from fractions import Fraction
from functools import cache, partial

import pytest
import yaml
from pydantic import ValidationError
from toy import toy_experiment

from albert_lab.config.compose import load
from albert_lab.errors import ConfigError
from albert_lab.studies import experiment
from albert_lab.studies.experiment import Experiment
from albert_lab.studies.grid import Variant, variants
from albert_lab.studies.plan import plan_study

SCALES = ["overnight", "gpu", "paper"]  # all tables are trained at smoke by .ci/run


def toy(**changes) -> Experiment:
    return toy_experiment(**{"fixed": ["scale=smoke"], "grid": {"seed": [0]}} | changes)


@cache
def points_of(name: str, scale: str, *overrides: str) -> list[Variant]:
    """One seed of a packaged experiment; composing takes a tenth of a second a point."""
    return variants(experiment.named(name), [f"scale={scale}", "seed=0", *overrides])


@pytest.mark.parametrize("file", experiment.files(), ids=lambda file: file.stem)
@pytest.mark.parametrize("scale", SCALES)
def test_every_packaged_experiment_expands_at_every_scale(file, scale):
    result = experiment.read(file)
    points = points_of(file.stem, scale)
    assert len(points) == len({tuple(point.labels.items()) for point in points})
    if result.paper is None:  # a figure
        return
    paper_rows = [tuple(row[axis] for axis in result.axes) for row in result.paper.rows]
    rows = list(dict.fromkeys(tuple(point.labels.values()) for point in points))
    assert paper_rows == [row for row in rows if row in paper_rows]
    beyond = {
        value
        for more in result.beyond_paper.values()
        if scale in more.scales
        for value in more.values
    }
    assert all(beyond & set(row) for row in rows if row not in paper_rows)


def run_of(name: str, scale: str, *overrides: str, **row: str) -> str:
    """Name of the run that fills a row."""
    points = plan_study(experiment.named(name), [f"scale={scale}", "seed=0", *overrides], []).points
    (point,) = (
        point
        for point in points
        if row.items() <= {k.split(".")[-1]: v for k, v in point.labels.items()}.items()
    )
    return point.run.name


@pytest.mark.parametrize("scale", SCALES)
def test_a_row_of_several_tables_is_one_run(scale):
    of = partial(run_of, scale=scale)
    bert = of("model-sizes", model="BERT-base")
    assert of("embedding-size", sharing="not-shared", embedding_size="768") == bert
    assert of("sharing", sharing="not-shared", embedding_size="768") == bert
    albert = of("model-sizes", model="ALBERT-base")
    assert of("embedding-size", sharing="all-shared", embedding_size="128") == albert
    assert of("sharing", sharing="all-shared", embedding_size="128") == albert
    assert of("width", hidden_size="1024") == of("depth", num_layers="3")
    assert of("wide-deep", num_layers="12") == of("model-sizes", model="ALBERT-xxlarge")


@pytest.mark.parametrize("scale", SCALES)
def test_the_models_of_tables_9_and_10_are_one_training_at_two_thirds_and_at_its_end(scale):
    first, last = points_of("glue", scale)
    assert (last.parent, last.keep) == (first, "training")
    steps = [point.config.budget.value * point.config.budget.stop_at for point in (first, last)]
    assert steps[1] % load([f"scale={scale}"]).budget.value == 0
    assert round(steps[0]) == round(steps[1] * 2 / 3)
    assert points_of("squad-race", scale) == [first, last]


@pytest.mark.parametrize("scale", SCALES)
def test_sizes_keep_the_papers_proportions_at_every_scale(scale):
    points = points_of("model-sizes", scale)
    shape = {point.labels["model"].split("-")[1]: point.config.model for point in points}
    assert Fraction(shape["large"].hidden_size, shape["base"].hidden_size) == Fraction(4, 3)
    assert Fraction(shape["xlarge"].hidden_size, shape["base"].hidden_size) == Fraction(8, 3)
    assert Fraction(shape["xxlarge"].hidden_size, shape["base"].hidden_size) == Fraction(16, 3)
    layers = {size: model.num_layers // shape["base"].num_layers for size, model in shape.items()}
    assert layers == {"base": 1, "large": 2, "xlarge": 2, "xxlarge": 1}


def test_rows_beyond_the_paper_appear_at_their_scales_and_elsewhere_on_request():
    def losses(*overrides):
        return [point.labels["inter_sentence"] for point in points_of("sop-vs-nsp", *overrides)]

    assert losses("laptop") == ["none", "nsp", "sop"]
    assert losses("gpu") == ["none", "nsp", "sop", "sop-release", "three-way"]
    assert losses("laptop", "inter_sentence=sop,three-way") == ["sop", "three-way"]


def test_a_label_can_set_several_keys_and_is_selected_by_name():
    table = toy(
        grid={
            "model": {
                "BERT": ["sharing=not-shared", "embedding_size=48"],
                "ALBERT": ["sharing=all-shared"],
            }
        }
    )
    both = variants(table)
    assert [(p.config.sharing.name, p.config.embedding_size) for p in both] == [
        ("not-shared", 48),
        ("all-shared", 8),
    ]
    assert [point.labels for point in variants(table, ["model=BERT"])] == [{"model": "BERT"}]
    for one in (
        "sharing=groups",
        "embedding_size=16",
        "machine.precision=fp32,bf16",
        "scale=smoke,laptop",
    ):
        with pytest.raises(ConfigError, match=one.partition("=")[0]):
            variants(table, [one])
    assert [point.config.seed for point in variants(table, ["+seed=4"])] == [4, 4]
    with pytest.raises(ConfigError, match="seed"):
        variants(toy(grid={"sharing": {"a": ["sharing=groups", "seed=5"]}}))


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"fixed": ["inter_sentence=sop", "nsp"]}, "'nsp' is not of the form KEY=VALUE"),
        ({"grid": {"form": {"a": ["0.1"]}}}, "'0.1' is not of the form KEY=VALUE"),
        ({"grid": {"dropout": [0, 0.1], "b": {"a": ["dropout=0"]}}}, "two axes set dropout"),
        ({"grid": {"model": {"huge": "${scale.roles.model.huge}"}}}, "model=huge"),
    ],
)
def test_settings_of_a_table_that_make_no_sense_are_named_before_any_run(changes, named):
    with pytest.raises(ConfigError, match=named):
        variants(toy(**changes))


def link(row: str, parent: str) -> dict:
    """A row of one number of layers that starts from the weights of another one."""
    layers = "model.num_layers"
    return {"row": {layers: row}, "parent": {layers: parent}, "keep": "weights"}


def test_parents_are_found_by_row_and_a_trunk_by_the_key_it_adds():
    layers = {"model.num_layers": [1, 2, 4]}
    first, second, third = variants(toy(grid=layers, start_from=[link("2", "1"), link("4", "2")]))
    assert first.parent is None
    assert (second.parent, second.keep) == (first, "weights")
    assert (third.parent, third.keep) == (second, "weights")
    (row,) = points_of("extra-data", "smoke", "data=With additional data")
    assert row.labels == {"data": "With additional data"}
    with pytest.raises(ConfigError, match="start_from"):
        variants(toy(grid=layers, start_from=[link("1", "2"), link("2", "1")]))
    trunk = {"row": {}, "parent": {"dropout": "0.1", "budget.stop_at": "0.5"}, "keep": "training"}
    kept, removed = variants(toy(grid={"dropout": [0.1, 0]}, start_from=[trunk]))
    assert kept.parent == removed.parent
    assert isinstance(kept.parent, Variant)
    assert kept.parent.config.budget.stop_at == 0.5
    assert kept.parent.parent is None


@pytest.mark.parametrize(
    ("name", "override", "says"),
    [
        ("depth", "model.num_layers=2,4", "give one of 1, 3, 6, 12, 24, 48"),
        ("depth", "warm_start=maybe", "warm_start=maybe is no row of the table"),
        ("extra-data", "added_corpus=none,sotu-since-1900", "rows of the table set this key"),
    ],
)
def test_a_row_that_the_table_cannot_have_is_refused(name, override, says):
    with pytest.raises(ConfigError, match=says):
        points_of(name, "smoke", override)


@pytest.mark.parametrize(
    ("changes", "key"),
    [
        (
            {"start_from": [{"row": {"sharing": "a"}, "parent": {}, "keep": "weights"}]},
            "start_from.row=sharing",
        ),
        ({"start_from": [{"row": {}, "parent": {}, "keep": "all"}]}, "'training' or 'weights'"),
        (
            {"beyond_paper": {"sharing": {"values": ["groups"], "scales": []}}},
            "beyond_paper=sharing",
        ),
        ({"grid": {"state": {"a": ["dropout=0"]}}}, "grid: state"),
        ({"grid": {"dropout": {"a": "0", " a ": "0.1"}}}, "a is given twice"),
    ],
)
def test_links_and_rows_must_name_axes(changes, key):
    with pytest.raises(ValidationError, match=key):
        toy(**changes)


ROWS = {"row": {"dropout": "0"}, "than": {"dropout": "0.1"}}
CLAIM = {"quote": "q", "check": "greater", "metric": "mlm_accuracy"} | ROWS


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"claims": [CLAIM | {"needs": {"model.layers": 1}}]}, "model.layers"),
        ({"claims": [CLAIM | {"needs": {"sharing": 1}}]}, "sharing"),
        ({"claims": [CLAIM | {"at_scale": "paper"}]}, "metric: parameters"),
        ({"claims": [CLAIM | {"at_scale": "huge", "metric": "parameters"}]}, "scale=huge"),
        ({"beyond_paper": {"dropout": {"values": ["0.2"], "scales": ["huge"]}}}, "scale=huge"),
    ],
)
def test_what_is_looked_up_after_a_training_is_checked_before_it(changes, named):
    grid = {"grid": {"dropout": ["0", "0.1"]}}
    with pytest.raises(ValidationError, match=named):
        toy(**grid, **changes)


@pytest.mark.parametrize("metric", ["mlm_accuracy", "sop_loss"])
def test_no_number_but_an_accuracy_over_two_labels_can_be_at_chance(metric):
    claim = {"quote": "q", "check": "at-chance", "metric": metric, "row": {"dropout": "0"}}
    with pytest.raises(ValidationError, match="two labels"):
        toy(grid={"dropout": ["0", "0.1"]}, claims=[claim])


def test_a_label_chooses_its_own_row_also_beside_one_with_other_capitals():
    table = toy(grid={"dropout": {"A": "0", "a": "0.1"}})
    assert [row.config.dropout for row in variants(table, ["dropout=a"])] == [0.1]


@pytest.mark.parametrize(
    ("changes", "overrides", "seeds"),
    [
        ({"grid": {"seed": [3, 4]}}, [], [3, 4]),
        ({"grid": {"seed": [3, 4]}}, ["seed=5"], [5]),
        ({"grid": {}, "fixed": ["scale=smoke", "seed=7"]}, [], [7]),
        ({"grid": {}}, [], [0]),
    ],
)
def test_seeds_are_those_of_the_command_or_else_of_the_experiment_or_else_of_the_scale(
    changes, overrides, seeds
):
    assert [point.config.seed for point in variants(toy(**changes), overrides)] == seeds


def test_a_number_that_replaces_one_of_the_paper_is_shown_with_it():
    table = experiment.named("embedding-size")
    (point, *_) = variants(table, ["scale=smoke", "sharing=all-shared"])
    assert point.label == "sharing=all-shared embedding_size=4 (paper: 64)"
    assert point.values["embedding_size"] == "4"
    (chosen,) = variants(table, ["scale=smoke", "sharing=all-shared", "embedding_size=64"])
    assert chosen == point, "a label chooses its row"
    (same,) = variants(table, ["scale=smoke", "sharing=all-shared", "embedding_size=4"])
    assert (same.labels["embedding_size"], same.config) == ("4", point.config), (
        "another value is used as it is"
    )


def test_the_parents_of_a_row_are_those_of_the_whole_table_whichever_rows_are_asked_for():
    overrides = ["scale=laptop", "seed=0", "warm_start=True", "model.num_layers=24"]
    (asked,) = plan_study(experiment.named("depth"), overrides, []).points
    assert [point.labels["model.num_layers"] for point in asked.lineage] == [
        "1",
        "3",
        "6",
        "12",
        "24",
    ]
    assert [point.config.model.num_layers for point in asked.lineage] == [1, 2, 3, 4, 6]


def test_an_override_replaces_an_axis_or_adds_one():
    sharing = toy(grid={"sharing": ["all-shared", "not-shared"]})
    first, second = variants(sharing, ["sharing=groups", "batch_size=8,16"])
    assert first.label == "sharing=groups batch_size=8"
    assert second.label == "sharing=groups batch_size=16"


def test_a_bare_sweep_has_the_keys_with_several_values_as_axes():
    result, rest = experiment.from_overrides(["embedding_size=8,16", "scale=smoke", "seed=0,1"])
    rows = variants(result, rest)
    assert [row.labels for row in rows[::2]] == [{"embedding_size": "8"}, {"embedding_size": "16"}]
    assert [row.config.seed for row in rows] == [0, 1, 0, 1]


def test_an_error_names_the_point_it_belongs_to_and_a_product_how_to_ask_for_pairs():
    with pytest.raises(ConfigError, match="model.num_attention_heads=5"):
        variants(toy(grid={"model.num_attention_heads": [2, 5]}))
    with pytest.raises(ConfigError, match="hidden_size=48 model.num_attention_heads=5") as error:
        variants(toy(), ["model.hidden_size=48,60", "model.num_attention_heads=4,5"])
    grid = yaml.safe_load(str(error.value).partition("grid: ")[2].replace("KEY", "batch_size"))
    grid = yaml.safe_load(str(grid).replace("OTHER", "budget.value"))
    assert [row.config.batch_size for row in variants(toy(grid=grid))] == [1, 3]
