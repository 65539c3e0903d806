from dataclasses import replace
from unittest import mock

import pytest
from command import here, own_signals
from torch import OutOfMemoryError
from toy import toy_config, write_corpus

from albert_lab import own_code, paths
from albert_lab.config import section
from albert_lab.config.compose import load
from albert_lab.errors import ConfigError
from albert_lab.runs import run as runs
from albert_lab.runs import worker

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


def test_a_name_that_a_file_adds_can_be_chosen_and_another_is_refused_with_the_allowed_ones(
    own,
):
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


@pytest.mark.parametrize(
    "text",
    [
        "x = 1\ny = x +\n",
        "import numpy\n\nnumpy.nothing\n",
        "raise SystemExit\n",
        "raise BaseException\n",
    ],
)
def test_an_error_in_a_file_names_it_each_time_and_the_file_never_counts_as_included(own, text):
    for _ in range(2):
        with pytest.raises(ConfigError, match="own.py: "):
            own(text)
        assert not own_code.included()


def test_an_error_that_own_code_or_a_wrong_value_may_have_caused_names_the_included_files(
    own,
):
    assert own_code.suspected(TypeError()) is None
    own("x = 1\n")
    for error in (TypeError(), RuntimeError(), NotImplementedError(), RecursionError()):
        assert "own.py" in str(own_code.suspected(error))
    for error in (ConfigError(), OSError(), OutOfMemoryError(), KeyboardInterrupt()):
        assert own_code.suspected(error) is None


def test_a_run_has_the_digest_of_a_file_in_its_name_and_its_process_needs_this_file(
    own, tmp_path, own_home
):
    file = own(ACTIVATION)
    config = toy_config(
        write_corpus(tmp_path / "text"), "budget.value=1", "model.hidden_act=squared-relu"
    )
    folder = runs.create(run := runs.plan(config))
    assert runs.read(folder) == run
    assert run.name != runs.Run(run.config, run.fingerprints).name
    assert here_of(folder) == 2
    assert here_of(folder, str(file)) == 0
    file.write_text(ACTIVATION + "# changed\n")
    assert here_of(folder, str(file)) == 2


def here_of(folder, *include):
    """The exit code of the process of a run, which has included nothing before."""
    with own_signals(), mock.patch.object(own_code, "_included", {}):
        return worker.main(folder, include=include)


def test_work_with_weights_needs_exactly_the_file_that_a_part_of_their_model_is_of(own, corpus):
    file = own(ACTIVATION)
    run = runs.plan(toy_config(corpus, "model.hidden_act=squared-relu"))
    assert runs.config_here(run) == run.config
    changed = replace(run, own_code={file.name: "0" * 12})
    with pytest.raises(ConfigError, match="--include FILE, with own.py"):
        runs.config_here(changed)
    # Such a file has only the optimizer, a mask or a measure.
    built_in = replace(changed, config=toy_config(corpus))
    assert runs.config_here(built_in) == built_in.config


def test_text_in_a_setting_or_an_own_option_is_never_own_code(tmp_path):
    (tmp_path / "scale").mkdir()
    option = paths.conf_file("scale/smoke.yaml").read_text() + f"include: {TEXT}\n"
    (tmp_path / "scale" / "mine.yaml").write_text(option)
    paths.use_conf([tmp_path])
    for asked in (["+include=" + TEXT], ["include=" + TEXT], ["scale=mine"]):
        with pytest.raises(ConfigError, match="include"):
            load(asked)


def test_an_own_option_that_is_no_yaml_or_has_no_list_of_defaults_is_named(tmp_path):
    (tmp_path / "model").mkdir()
    for text in ("num_layers: [\n", "defaults: 3\n"):
        (tmp_path / "model" / "mine.yaml").write_text(text)
        shown = here("config", "show", "model=mine", "--conf", str(tmp_path))
        assert shown.returncode == 2
        assert "model/mine" in shown.stderr
