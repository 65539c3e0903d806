import pytest
from command import here, use_conf
from toy import toy_config

from albert_lab import own_code, paths
from albert_lab.config import section
from albert_lab.config.compose import load
from albert_lab.errors import ConfigError
from albert_lab.runs import run as runs

ACTIVATION = """
from albert_lab.model.blocks import ACTIVATIONS

def squared_relu(states):
    return states.relu().square()

ACTIVATIONS["squared-relu"] = squared_relu
"""
TEXT = "[{file: x.py, text: \"open('pwned', 'w')\"}]"


def test_the_names_that_are_built_in_are_those_of_the_dicts(own):
    own("")
    for key, names in section.BUILT_IN.items():
        assert own_code.names(key) == list(names)


def test_a_name_that_a_file_adds_can_be_chosen_and_one_that_it_does_not_is_refused_with_the_allowed_ones(own):
    own(ACTIVATION)
    assert load(["scale=smoke", "model.hidden_act=squared-relu"]).model.hidden_act == "squared-relu"
    with pytest.raises(ConfigError, match="squared-relu"):
        load(["scale=smoke", "model.hidden_act=swish"])


def test_the_same_content_is_executed_once_and_two_files_of_one_name_are_refused(own, tmp_path):
    own(ACTIVATION)
    own(ACTIVATION, "other/own.py")
    assert len(own_code.included()) == 1
    with pytest.raises(ConfigError, match="own.py"):
        own(ACTIVATION + "# changed\n", "third/own.py")


@pytest.mark.parametrize("text", ["x = 1\ny = x +\n", "import numpy\n\nnumpy.nothing\n", "raise SystemExit\n"])
def test_an_error_in_a_file_names_the_file(own, text):
    with pytest.raises(ConfigError, match="own.py: "):
        own(text)


def test_an_error_that_own_code_or_a_value_of_the_wrong_kind_may_have_caused_names_the_files_that_are_included(own):
    assert own_code.suspected(TypeError("no block")) is None
    own("x = 1\n")
    for error in (TypeError("no block"), ZeroDivisionError()):
        assert "own.py" in str(own_code.suspected(error))
    for error in (ConfigError("dropout=2"), OSError("disk"), RuntimeError("memory"), KeyboardInterrupt()):
        assert own_code.suspected(error) is None


@pytest.fixture
def run_of(own, tmp_path, monkeypatch):
    """A run that was planned with a file of own code, whose process has not yet begun."""
    monkeypatch.setenv("ALBERT_LAB_HOME", str(tmp_path / "home"))
    file = own(f"open({str(tmp_path / 'executed')!r}, 'w').close()\r\n")  # a copy has the same bytes
    file.unlink()
    (tmp_path / "executed").unlink()
    run = runs.Run(toy_config(tmp_path), {"corpus": "c0ffee", "tokenizer": "7ea"}, None, own_code.included())
    runs.create(run)
    monkeypatch.setattr(own_code, "_included", {})
    return run


def test_the_digest_of_a_file_is_part_of_the_name_of_a_run_and_survives_its_file(run_of):
    assert runs.read(run_of.folder) == run_of
    assert run_of.name != runs.Run(run_of.config, run_of.fingerprints).name


def test_the_process_of_a_run_executes_the_copies_in_its_folder(run_of, tmp_path):
    runs.include_copies(run_of, run_of.folder)
    assert (tmp_path / "executed").exists()


@pytest.mark.parametrize("damage", ["changed copy", "changed digest", "other folder", "other version"])
def test_a_copy_is_not_executed_unless_its_digest_is_in_the_name_of_the_folder(run_of, tmp_path, damage):
    folder, copy = run_of.folder, run_of.folder / "include" / "own.py"
    if damage == "other folder":
        folder = folder.rename(folder.with_name("other"))
    else:
        copy.write_text(copy.read_text() + "\n")
    if damage.startswith("changed digest") or damage == "other version":
        file = folder / runs.RUN_FILE
        (digest,) = run_of.own_code.values()
        changed = file.read_text().replace(digest, own_code.digest_of(copy.read_bytes()))
        if damage == "other version":
            changed = changed.replace("results_version: ", "results_version: 1")
        file.write_text(changed)
    with pytest.raises(ConfigError):
        runs.include_copies(runs.read(folder), folder)
    assert not (tmp_path / "executed").exists()


def test_a_file_in_a_record_has_a_plain_name(run_of):
    file = run_of.folder / runs.RUN_FILE
    file.write_text(file.read_text().replace("own.py", "../../victim.txt"))
    with pytest.raises(ConfigError, match="victim"):
        runs.read(run_of.folder)


def test_work_with_a_model_needs_exactly_the_file_that_it_was_made_with(own):
    file = own(ACTIVATION)
    with pytest.raises(ConfigError, match="include/own.py"):
        own_code.check({file.name: "0" * 12}, "the model")
    own_code.check(own_code.included(), "the model")


def test_text_in_a_setting_or_an_own_option_is_never_own_code(tmp_path):
    (tmp_path / "scale").mkdir()
    option = paths.conf_file("scale/smoke.yaml").read_text() + f"include: {TEXT}\n"
    (tmp_path / "scale" / "mine.yaml").write_text(option)
    use_conf(tmp_path)
    for asked in (["+include=" + TEXT], ["include=" + TEXT], ["scale=mine"]):
        with pytest.raises(ConfigError, match="include"):
            load(asked)


def test_an_own_option_that_is_no_yaml_is_named(tmp_path):
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "mine.yaml").write_text("num_layers: [\n")
    shown = here("config", "show", "model=mine", "--conf", str(tmp_path))
    assert shown.returncode == 2
    assert "model/mine.yaml" in shown.stderr
