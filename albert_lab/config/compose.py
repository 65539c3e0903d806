"""Configuration from conf/ and the command line: Hydra composes it, pydantic checks and freezes
it.
"""

import difflib
import itertools
import json
import operator
import os
import pickle
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any, TypeAlias, cast

from hydra import initialize_config_dir
from hydra.core.config_loader import ConfigLoader
from hydra.core.global_hydra import GlobalHydra
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override, Quote, QuotedString
from hydra.errors import HydraException
from hydra.types import RunMode
from omegaconf import DictConfig, OmegaConf, open_dict
from omegaconf.errors import ConfigAttributeError, ConfigKeyError, OmegaConfBaseException
from pydantic import ValidationError

from albert_lab import own_code, paths
from albert_lab.config.schema import RunConfig
from albert_lab.config.section import BUILT_IN
from albert_lab.errors import ConfigError
from albert_lab.files import check_distinct, describe, read_bytes

# A value of a configuration, as plain data; settings have values by key, or the option of a group
# by its name.
Value: TypeAlias = "bool | int | float | str | list[Value] | dict[str, Value] | None"
Settings = Mapping[str, Value]

# Limit of a sweep: each run takes a hundredth of a second to compose, and has a separate folder.
MAX_POINTS = 10_000


@cache
def hydra() -> ConfigLoader:
    """Hydra's reader of conf/, with the functions that interpolations in it call."""
    functions = {
        "hidden_over": _hidden_over,
        "sandwich": _sandwich,
        "scale_budgets": _scale_budgets,
        "multiply": operator.mul,
    }
    for name, function in functions.items():
        OmegaConf.register_new_resolver(name, function, replace=True)
    with initialize_config_dir(str(paths.CONF), version_base="1.3"):
        return GlobalHydra.instance().config_loader()


def _hidden_over(divisor: int, *, _root_: Any) -> int:
    hidden_size = _root_.model.hidden_size
    if hidden_size % divisor:
        raise ConfigError(f"model.hidden_size={hidden_size} is not divisible by {divisor}")
    return hidden_size // divisor


def _sandwich(num_layers: int) -> list[int]:
    """The block of each layer: one of its own for the first and for the last, and one for all
    between them.
    """
    return [0, *[1] * (num_layers - 2), min(num_layers - 1, 2)][:num_layers]


def _scale_budgets(papers: int, *, _root_: Any) -> float:
    return _root_.scale.roles.budgets[str(papers)] * _root_.scale.budget[_root_.budget.unit]


@paths.cache_until_use_conf
def groups() -> dict[str, list[str]]:
    """Every configuration group with its options, read from file names: those of conf/, then those
    of the user.
    """
    options: dict[str, list[str]] = {}
    for file in paths.conf_files("*/*.yaml"):
        if file.parent.name != "task":  # no settings of a run
            options.setdefault(file.parent.name, []).append(file.stem)
    return options


def load(overrides: Sequence[str] = ()) -> RunConfig:
    """The configuration of one run, composed from conf/ and `key=value` overrides.

    Raises:
        ConfigError: see settings_of() and compose().
    """
    return compose(settings_of(overrides))


def compose(settings: Settings) -> RunConfig:
    """The configuration of one run, composed from conf/ and settings.

    Raises:
        ConfigError: an unknown key or option, a wrong type, or an invalid value; the message has
            key and value.
    """
    config = validate(content_of(settings))
    # not in validate(), which reads records without their own code
    for key, built_in in BUILT_IN.items():
        # With own code, the names are those of the dict, which has the built-in ones too.
        known = own_code.names(key) or built_in
        if config.value(key) not in known:
            raise ConfigError(
                f"{key}={config.value(key)} is unknown (allowed: {', '.join(known)}; --include "
                "FILE.py adds others)"
            )
    return config


def content_of(settings: Settings) -> dict[str, Any]:
    """The whole configuration as plain data, composed from conf/ and settings.

    Raises:
        ConfigError: see compose().
    """
    options, values = _options_and_values(settings)
    composed = DictConfig({})
    try:
        pickled, choices = _composed_of(tuple(sorted(options.items())))
        composed = pickle.loads(pickled)
        for key, value in values.items():
            OmegaConf.update(composed, key, value, merge=True)
        content: Any = OmegaConf.to_container(composed, resolve=True)
    except (ConfigAttributeError, ConfigKeyError) as error:
        key = str(error.full_key)
        raise ConfigError(
            f"unknown key {key}; {_nearest(key, composed)}`albert-lab config show` prints every "
            "key of the chosen options"
        ) from error
    # Of Hydra: `defaults` that are no list, or of an option that name the option.
    except (HydraException, OmegaConfBaseException, ValueError, RecursionError) as error:
        key = str(getattr(error, "full_key", ""))
        remedy = ""
        if "${" in str(settings.get(key, "")):
            remedy = f"; if ${{ is text: {_as_one_value(f'{key}={settings[key]}')}"
        raise ConfigError(_in_one_line(error) + remedy) from error
    for group, choice in choices.items():
        if group not in content:
            raise ConfigError(f"{group}={choice}: a file of an option has no line # @package")
        content[group].setdefault("name", choice)
    if missing := sorted(OmegaConf.missing_keys(composed)):
        raise ConfigError("; ".join(f"{key} must be given: {key}=VALUE" for key in missing))
    tokenizer = content["tokenizer"]
    if tokenizer["model_file"] and "tokenizer.vocab_size" not in values:
        size = vocabulary_size(str(tokenizer["model_file"]))
        tokenizer["vocab_size"] = size or tokenizer["vocab_size"]
    added = content["added_corpus"]
    if added["source"] == "none" and added["path"] and "added_corpus" not in options:
        raise ConfigError(
            f"added_corpus.path={added['path']}: not read without added_corpus=files: give both"
        )
    return content


def _options_and_values(settings: Settings) -> tuple[dict[str, str], dict[str, Value]]:
    """The option of each group that settings choose, and the values of their other keys."""
    options: dict[str, str] = {}
    values: dict[str, Value] = {}
    for key, value in settings.items():
        allowed = groups().get(key)
        if allowed is None:
            values[key] = value
        elif value in allowed:
            options[key] = str(value)
        else:
            file = f"{key}/{value}.yaml"
            remedy = own_code.missing_option(key, str(value), file)
            raise ConfigError(f"{key}={value} is unknown (allowed: {', '.join(allowed)}){remedy}")
    return options, values


@paths.cache_until_use_conf  # Hydra takes 40 ms, and the runs of a table have the same options
def _composed_of(options: tuple[tuple[str, str], ...]) -> tuple[bytes, dict[str, str]]:
    """conf/ with options of groups, composed by Hydra, and the option of each group.

    The composed DictConfig is pickled: it is changed for every run, and a copy of it takes seven
    times as long.
    """
    folders = ", ".join(quoted(f"file://{folder}") for folder in paths.own_conf)
    overrides = [f"{group}={quoted(option)}" for group, option in options]
    overrides.append(f"hydra.searchpath=[{folders}]")
    composed = hydra().load_configuration("config", overrides, RunMode.RUN, from_shell=False)
    choices = {
        key: str(value) for key, value in composed.hydra.runtime.choices.items() if "/" not in key
    }
    with open_dict(composed):
        del composed["hydra"]
    return pickle.dumps(composed), choices


@paths.cache_until_use_conf  # many configurations use one file
def vocabulary_size(name: str) -> int | None:
    """Number of tokens of tokenizer.model_file; None if there is no such file (its first use says
    so).

    Raises:
        ConfigError: the file cannot be read, or is neither a SentencePiece model nor a
            tokenizer.json.
    """
    if not (file := paths.expanded(name)).exists():
        return None
    model = read_bytes(file)
    try:
        if file.suffix == ".json":
            import tokenizers

            # ids may have gaps
            return 1 + max(tokenizers.Tokenizer.from_buffer(model).get_vocab().values())
        from sentencepiece import SentencePieceProcessor

        return SentencePieceProcessor(model_proto=model).GetPieceSize()
    except (RuntimeError, ValueError) as error:  # of SentencePiece, and of tokenizers
        said = "is neither a SentencePiece model nor a tokenizer.json"
        raise ConfigError(f"tokenizer.model_file={name} {said}") from error


def quoted(text: str) -> str:
    """Quotes a text, so that the value of an override is this text."""
    return QuotedString(text=text, quote=Quote.single).with_quotes()


def validate(content: Any) -> RunConfig:
    """A frozen RunConfig from plain data that was composed or read from run.yaml.

    Raises:
        ConfigError: every invalid key, with its value and the allowed values.
    """
    try:
        # JSON mode: lists become tuples, and numbers stay strict.
        return RunConfig.model_validate_json(json.dumps(content))
    except ValidationError as error:
        raise ConfigError("; ".join(map(describe, error.errors()))) from error


def _nearest(key: str, composed: DictConfig) -> str:
    """The question whether the key that is most alike was meant; empty if none is."""
    from pandas import json_normalize  # it takes a while, and only an error needs it

    content: Any = OmegaConf.to_container(composed)
    known = [*groups(), *json_normalize(content).columns]
    same_name = [name for name in known if name.endswith(f".{key}")]
    near = same_name or difflib.get_close_matches(key, known, n=1)
    return f"did you mean {near[0]}? " if near else ""


def _in_one_line(error: Exception) -> str:
    return re.sub(r"\s*\n\s*", "; ", str(error).split("\nSee https://")[0].strip())


def settings_of(overrides: Sequence[str]) -> dict[str, Value]:
    """The value of each key of `key=value` overrides; of a key that is given twice, the last
    counts.

    Raises:
        ConfigError: a text that is not an override, or has several values; the message has the form
            that is one value.
    """
    settings: dict[str, Value] = {}
    for override in map(_parse, overrides):
        if override.is_sweep_override():
            line = str(override.input_line)
            remedy = f"as one value: {_as_one_value(line)}"
            raise ConfigError(f"{line} has several values, but a run allows only one; {remedy}")
        settings[override.key_or_group] = cast(Value, override.value())
    return settings


@cache  # Hydra takes a millisecond, and the rows of a table repeat values
def _parse(text: str) -> Override:
    """An override in Hydra's grammar: `a=1,2`, `range(0,5)`, `glob(*)`, quoting; ConfigError for
    one that is none.
    """
    key = text.partition("=")[0]
    if not key or "=" not in text:
        raise ConfigError(f"{text!r} is not of the form KEY=VALUE")
    try:
        (override,) = OverridesParser.create(hydra()).parse_overrides([text])
    except (HydraException, ValueError, RecursionError) as error:
        # ValueError: a number of thousands of digits
        remedy = (
            "a text with other characters than letters, digits and ._/:- needs quotes: "
            f"{_as_one_value(text)}"
        )
        raise ConfigError(
            f"{text[:200]!r} cannot be read as KEY=VALUE: {_in_one_line(error)}; {remedy}"
        ) from error
    if override.is_delete() or override.package is not None:
        raise ConfigError(f"{text}: no key can be removed or has a package (@): write KEY=VALUE")
    return override


def _as_one_value(override: str) -> str:
    """The argument of a shell that sets a key to exactly the text behind its first `=`, with all
    its signs.
    """
    key, _, text = override[:200].partition("=")
    literal = text.strip("'\"").replace("${", r"\${")
    return shlex.quote(f"{key}={QuotedString(text=literal, quote=Quote.double).with_quotes()}")


def axes(overrides: Sequence[str]) -> dict[str, dict[str, Value]]:
    """The values of each overridden key by their texts in Hydra's grammar: one if it is fixed,
    several if it is swept.

    Raises:
        ConfigError: a text that is not an override, a value or a list of values that is given
            twice, an interval, which is not a list of values, or a list that is the name of a file.
    """
    values: dict[str, dict[str, Value]] = {}
    for override in map(_parse, overrides):
        key = override.key_or_group
        is_swept = override.is_sweep_override()
        if key in values and (is_swept or len(values[key]) > 1):
            raise ConfigError(
                f"{key} is given twice, once with several values: list all of them once, {key}=a,b"
            )
        if is_swept:
            values[key] = _listed(override)
        else:
            values[key] = {str(override.get_value_element_as_str()): cast(Value, override.value())}
    return values


def _listed(override: Override) -> dict[str, Value]:
    """The values of a sweep by their texts; ConfigError as axes()."""
    line = str(override.input_line)
    key, _, file = line.partition("=")
    is_one_name = os.path.exists(paths.expanded(file))  # False for one that is too long
    try:
        texts = list(itertools.islice(override.sweep_string_iterator(), MAX_POINTS + 1))
        check_distinct(texts)
    # Of Hydra: interval(), which has no list of values; others: range() with a step of 0.
    except (HydraException, ValueError, TypeError) as error:
        raise ConfigError(
            f"{line}: {error}; list the values: a,b,c, or range(FIRST,END,STEP)"
        ) from error
    if not 0 < len(texts) <= MAX_POINTS:
        raise ConfigError(f"{line} must have from 1 to {MAX_POINTS:,} values")
    elements = list(map(Override._convert_value, override.sweep_iterator()))
    if key.endswith((".path", ".model_file")) and ", " in file:
        # a name with a comma that is mistyped, or a list of files, which has no spaces
        is_one_name |= not all(os.path.exists(paths.expanded(str(name))) for name in elements)
    if is_one_name:
        raise ConfigError(
            f"{line} has several values; of several names, leave no space after commas; as one "
            f"value: {_as_one_value(line)}"
        )
    return {text: cast(Value, element) for text, element in zip(texts, elements, strict=True)}


def expand(grid: Mapping[str, Iterable[str]]) -> list[dict[str, str]]:
    """The points of a grid: every combination of its values; the last axis varies fastest."""
    return [dict(zip(grid, values, strict=True)) for values in itertools.product(*grid.values())]
