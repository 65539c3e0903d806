import pytest

from albert_lab.errors import ConfigError
from albert_lab.lab import experiment
from albert_lab.lab.experiment import Experiment


def toy(**changes) -> Experiment:
    content = {"name": "toy", "title": "Toy", "source": "none", "fixed": ["scale=smoke"], "grid": {"seed": [0]}}
    return Experiment.model_validate(content | changes)


def rows_and_seeds(points) -> list[tuple[dict[str, str], int]]:
    return [(point.row, point.config.seed) for point in points]


@pytest.mark.parametrize("file", experiment.files(), ids=lambda file: file.stem)
@pytest.mark.parametrize("scale", ["smoke", "laptop", "gpu", "paper"])
def test_every_packaged_experiment_expands_at_every_scale(file, scale):
    found = experiment.read(file)
    points = experiment.points(found, [f"scale={scale}"])
    seeds = {point.config.seed for point in points}
    assert len(points) == len(seeds) * len({tuple(point.row.items()) for point in points})
    assert found.paper is not None
    paper_rows = [tuple(row[axis] for axis in found.axes) for row in found.paper.rows]
    assert paper_rows == list(dict.fromkeys(tuple(point.row.values()) for point in points))


def test_there_is_a_file_for_each_experiment():
    assert {file.stem for file in experiment.files()} >= {"sop-vs-nsp", "embedding-size", "sharing"}


def test_an_embedding_size_stands_by_its_role_at_every_hidden_size():
    points = experiment.points(experiment.named("embedding-size"), ["scale=paper", "sharing=all-shared"])
    assert [point.config.embedding_size for point in points] == [64, 128, 256, 768]
    points = experiment.points(experiment.named("embedding-size"), ["scale=laptop", "sharing=all-shared"])
    hidden_size = points[0].config.model.hidden_size
    assert [point.config.embedding_size for point in points] == [hidden_size // part for part in (12, 6, 3, 1)]


def test_seeds_come_from_the_scale_unless_given():
    assert len(experiment.points(toy(grid={"sharing": ["all-shared"]}))) == 1
    given = experiment.points(toy(grid={"sharing": ["all-shared"]}), ["seed=3,4"])
    assert rows_and_seeds(given) == [({"sharing": "all-shared"}, 3), ({"sharing": "all-shared"}, 4)]


def test_an_override_replaces_an_axis_or_adds_one():
    sharing = toy(grid={"sharing": ["all-shared", "not-shared"]})
    points = experiment.points(sharing, ["sharing=groups", "batch_size=8,16"])
    assert [point.row for point in points] == [
        {"sharing": "groups", "batch_size": "8"},
        {"sharing": "groups", "batch_size": "16"},
    ]


def test_a_bare_sweep_has_the_keys_with_several_values_as_axes():
    found, rest = experiment.from_overrides(["embedding_size=8,16", "scale=smoke", "seed=0,1"])
    assert found.axes == ("embedding_size",)
    assert rest == ["scale=smoke", "seed=0,1"]
    assert len(experiment.points(found, rest)) == 4


def test_a_sweep_over_nothing_is_refused():
    with pytest.raises(ConfigError, match="several values"):
        experiment.from_overrides(["embedding_size=8"])


def test_an_error_names_the_point_it_belongs_to():
    with pytest.raises(ConfigError, match=r"model.num_attention_heads=5: .*does not divide"):
        experiment.points(toy(grid={"model.num_attention_heads": [2, 5]}))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("title: [", "cannot be read as YAML"),
        ("just words", "title: Field required"),
        ("title: a\nsource: b\ngrid: {seed: [0]}\ncolums: [x]", "colums"),
        ("title: a\nsource: b", "grid"),
        (
            "title: a\nsource: b\ngrid: {sharing: [all-shared]}\n"
            "paper: {table: t, columns: {mnli: MNLI}, rows: [{sharing: shared, mnli: 1.0}]}",
            "sharing=shared is not among all-shared",
        ),
    ],
)
def test_a_file_that_does_not_fit_is_named_with_what_is_wrong(tmp_path, text, message):
    file = tmp_path / "mine.yaml"
    file.write_text(text)
    with pytest.raises(ConfigError, match=r"mine\.yaml") as error:
        experiment.read(file)
    assert message in str(error.value)


def test_paper_cells_stay_as_printed():
    found = experiment.named("sop-vs-nsp")
    assert found.paper is not None
    assert found.paper.rows[0]["average"] == "79.0"
