import pytest
from command import here

from albert_lab import paths, registry
from albert_lab.config.compose import load, validate
from albert_lab.errors import ConfigError
from albert_lab.registry import Registry

SQUARE = """
from albert_lab.extend import activation

@activation("squared-relu")
def squared_relu(states):
    return states.relu().square()
"""


@pytest.fixture(autouse=True)
def nothing_included():
    with registry.separate():
        yield


@pytest.fixture
def own(tmp_path):
    """Writes a file of own code and includes it."""

    def include(text, name="own.py"):
        file = tmp_path / name
        file.write_text(text)
        return registry.include(file)

    return include


def test_a_registry_has_the_things_of_the_package_and_then_those_of_included_files(own):
    things = Registry("activation", {"relu": abs})
    own(SQUARE)
    assert [*things] == ["relu", "squared-relu"]
    assert "squared-relu" in things
    assert things["squared-relu"].__name__ == "squared_relu"


def test_the_same_text_is_executed_once_under_any_name(own):
    assert own(SQUARE, "one.py").digest == own(SQUARE, "two.py").digest


def test_what_is_included_within_a_context_is_forgotten_at_its_end(own):
    with registry.separate():
        own(SQUARE)
    assert not registry.own("activation")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("x = 1\ny = x +\n", r"own.py, line 2: invalid syntax"),
        ("import numpy\n\nnumpy.nothing\n", r"own.py, line 3: AttributeError: module 'numpy' has no attribute"),
        ("def f():\n    raise ValueError('two\\nlines')\nf()\n", r"own.py, line 2: ValueError: two lines"),
        ("import sys\nsys.exit(3)\n", r"own.py, line 2: SystemExit: 3"),
        ("x = 1\n", r"own.py: registers nothing"),
        ("from albert_lab.extend import nothing\n", r"own.py, line 1: ImportError: cannot import name 'nothing'"),
        (SQUARE.replace("squared-relu", "gelu"), r"own.py, line 4: activation gelu is part of albert_lab"),
        (SQUARE + SQUARE, r"own.py, line 10: activation squared-relu is registered twice"),
        (
            SQUARE.replace("squared-relu", "squared relu"),
            r"own.py, line 4: activation 'squared relu': a name has letters",
        ),
        (SQUARE.replace("squared-relu", "3"), r"own.py, line 4: activation '3': a name .* is no number"),
        (SQUARE.replace("squared-relu", "true"), r"own.py, line 4: activation 'true': a name .* is no number"),
    ],
)
def test_an_error_in_an_included_file_names_the_file_and_the_line_and_registers_nothing(own, text, said):
    with pytest.raises(ConfigError, match=said):
        own(text)
    assert not registry.own("activation")


def test_two_files_cannot_register_the_same_name(own):
    own(SQUARE, "first.py")
    with pytest.raises(ConfigError, match=r"squared-relu is registered twice: by first.py too"):
        own(SQUARE + "# changed\n", "second.py")


def test_a_file_that_is_not_there_or_is_no_text_is_named(tmp_path):
    (tmp_path / "own.py").write_bytes(b"\xff")
    for name, said in (("none.py", "does not exist"), (".", "is a folder"), ("own.py", "cannot be read as UTF-8")):
        with pytest.raises(ConfigError, match=said):
            registry.include(tmp_path / name)


def test_own_code_is_registered_only_by_an_included_file():
    with pytest.raises(ConfigError, match="--include FILE.py"):
        registry.register("activation", "mine", abs)


def test_work_with_a_model_needs_exactly_the_text_that_it_was_trained_with(own):
    trained_with = own(SQUARE)
    registry.check_included([trained_with], "the model")
    with registry.separate():
        with pytest.raises(ConfigError, match="add --include own.py"):
            registry.check_included([trained_with], "the model")
        own(SQUARE + "# changed\n")
        with pytest.raises(ConfigError, match="with another text"):
            registry.check_included([trained_with], "the model")


def test_an_error_below_own_code_is_told_with_its_line_but_not_one_that_says_what_happened(own):
    own(SQUARE)
    function = registry.own("activation")["squared-relu"]
    with pytest.raises(AttributeError) as raised:
        function("text")
    assert registry.error_of_own_code(raised.value) == (
        f"{function.__code__.co_filename}, line 6: AttributeError: 'str' object has no attribute 'relu'"
    )
    assert registry.error_of_own_code(ValueError("elsewhere")) is None
    with pytest.raises(MemoryError) as raised:
        function(type("Full", (), {"relu": property(lambda self: (_ for _ in ()).throw(MemoryError()))})())
    assert registry.error_of_own_code(raised.value) is None


def test_an_own_option_that_is_no_yaml_is_named(tmp_path):
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "mine.yaml").write_text("num_layers: [\n")
    shown = here("config", "show", "model=mine", "--conf", str(tmp_path))
    assert shown.returncode == 2
    assert "model/mine.yaml: cannot be read as YAML" in shown.stderr


TEXT = "[{file: x.py, text: \"import pathlib; pathlib.Path('pwned').touch()\"}]"


@pytest.mark.parametrize("asked", [["+include=" + TEXT], ["++include=" + TEXT]])
def test_text_in_a_setting_is_never_own_code(asked):
    with pytest.raises(ConfigError, match="--include FILE"):
        load(["scale=smoke", *asked])


def test_text_in_an_own_option_is_never_own_code(tmp_path):
    (tmp_path / "scale").mkdir()
    option = paths.conf_file("scale/smoke.yaml").read_text() + f"include: {TEXT}\n"
    (tmp_path / "scale" / "mine.yaml").write_text(option)
    with paths.with_conf([tmp_path]), pytest.raises(ConfigError, match="--include FILE"):
        load(["scale=mine"])


def test_a_file_of_own_code_in_a_record_has_a_plain_name():
    content = load(["scale=smoke"]).model_dump(mode="json")
    with pytest.raises(ConfigError, match="is not a name"):
        validate(content | {"include": [{"file": "../../victim.txt", "text": "x = 1"}]})
