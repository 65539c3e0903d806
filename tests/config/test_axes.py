import shlex

import pytest

from albert_lab.config import compose as config
from albert_lab.errors import ConfigError


@pytest.mark.parametrize(
    ("text", "key", "values"),
    [
        ("seed=0", "seed", ["0"]),
        ("seed=range(4)", "seed", ["0", "1", "2", "3"]),
        ("masking=glob(*)", "masking", config.groups()["masking"]),
        ("inter_sentence=none,nsp,sop", "inter_sentence", ["none", "nsp", "sop"]),
        (
            "optimizer.betas=[0.9,0.99],[0.9,0.999]",
            "optimizer.betas",
            ["[0.9,0.99]", "[0.9,0.999]"],
        ),
        ("corpus.path='a,b'", "corpus.path", ["'a,b'"]),
        ("optimizer.learning_rate=1e-3,null", "optimizer.learning_rate", ["0.001", "null"]),
    ],
)
def test_an_axis_is_read_in_the_grammar_of_hydra(text, key, values):
    assert {axis: [*texts] for axis, texts in config.axes([text]).items()} == {key: values}


def test_the_text_of_a_value_reads_as_the_value():
    path = "my texts/it's, [here] = {there}.txt"
    ((text, value),) = config.axes([f'corpus.path="{path}"'])["corpus.path"].items()
    assert value == path
    assert config.settings_of([f"corpus.path={text}"]) == {"corpus.path": path}


@pytest.mark.parametrize(
    "path", ["my texts, 2024", "[draft] v2.txt", "${HOME}.txt", "it's #1 = {x}.txt", "a,b's\\"]
)
def test_a_path_that_hydra_cannot_read_is_refused_with_an_argument_that_means_it(path):
    with pytest.raises(ConfigError) as error:
        config.load(["corpus=files", f"corpus.path={path}"])
    (argument,) = shlex.split(str(error.value).rpartition(": ")[2])
    assert config.load(["corpus=files", argument]).corpus.path == path


@pytest.mark.parametrize(
    "text",
    [
        "dropout=interval(0,1)",
        "seed=0,1,0",
        "seed=0 seed=1,2",
        "~dropout",
        "model=glob(huge*)",
        "seed=[1,2",
        "corpus.path=été",
        "seed=range(0,1000000)",
    ],
)
def test_an_axis_without_a_short_list_of_different_values_is_refused(text):
    with pytest.raises(ConfigError, match=text.split("=")[0].strip("~")):
        config.axes(text.split())


def test_the_last_axis_of_a_grid_varies_fastest():
    points = config.expand({"sharing": "an", "seed": "01"})
    assert ["".join(point.values()) for point in points] == ["a0", "a1", "n0", "n1"]
