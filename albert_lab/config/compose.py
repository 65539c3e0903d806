"""Configuration from conf/ and the command line: Hydra composes it, pydantic checks and freezes it."""

import copy
import difflib
import itertools
import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from hydra import compose
from hydra.core.global_hydra import GlobalHydra
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override, Quote, QuotedString, Sweep
from hydra.errors import HydraException
from omegaconf import DictConfig, OmegaConf, open_dict
from omegaconf.errors import (
    ConfigAttributeError,
    ConfigKeyError,
    InterpolationToMissingValueError,
    OmegaConfBaseException,
)
from pydantic import BaseModel, ValidationError

from albert_lab import own_code, paths
from albert_lab.config.data import check_added
from albert_lab.config.interpolation import hydra
from albert_lab.config.schema import RunConfig
from albert_lab.config.section import BUILT_IN, AnySection
from albert_lab.config.vocabulary import vocabulary_size
from albert_lab.errors import ConfigError
from albert_lab.files import describe, details_of

# Limit of a sweep: each run takes a hundredth of a second to compose, and has a separate folder.
MAX_POINTS = 10_000


@paths.until_conf_changes
def groups() -> dict[str, list[str]]:
    """Every configuration group with its options, read from file names: those of conf/, then those of the user."""
    options: dict[str, list[str]] = {}
    for file in paths.conf_files("*/*.yaml"):
        if file.parent.name != "task":  # no settings of a run
            options.setdefault(file.parent.name, []).append(file.stem)
    return options


def load(overrides: Sequence[str] = ()) -> RunConfig:
    """The configuration of one run, composed from conf/ and `key=value` overrides.

    Raises:
        ConfigError: an unknown key or option, a wrong type, or an invalid value; the message has key and value.
    """
    content = content_of(overrides)
    del content["launcher"]  # setting of the command, not of the run: config/launcher.py
    config = validate(content)
    for key, name in config.names:  # not in validate(), which reads records without their own code
        known = [*dict.fromkeys([*BUILT_IN[key], *own_code.names(key)])]
        if name not in known:
            raise ConfigError(f"{key}={name} is unknown (allowed: {', '.join(known)}; --include FILE.py adds others)")
    return config


def content_of(overrides: Sequence[str]) -> dict[str, Any]:
    """The whole configuration as plain data, with `key=value` overrides.

    Raises:
        ConfigError: see load().
    """
    parsed = parse(overrides)
    if swept := next((override for override in parsed if override.is_sweep_override()), None):
        raise ConfigError(f"{swept.input_line} has several values, but a run allows only one")
    # If an option is given twice, the last one counts.
    chosen = {override.key_or_group: str(override.input_line) for override in parsed if _is_group(override)}
    try:
        content = _with_values(*_of_options(tuple(sorted(chosen.values()))), parsed)
    except (HydraException, OmegaConfBaseException) as error:
        raise ConfigError(_explain(error)) from error
    if missing := sorted(_missing(content)):
        raise ConfigError("; ".join(f"{key} must be given: {key}=VALUE" for key in missing))
    _take_vocabulary_size(content, parsed)
    check_added(content["added_corpus"], is_chosen="added_corpus" in chosen)
    return content


def _is_group(override: Override) -> bool:
    return override.key_or_group in groups()


@paths.until_conf_changes  # Hydra takes 40 ms, and the runs of a table have the same options
def _of_options(options: tuple[str, ...]) -> tuple[DictConfig, dict[str, str]]:
    """conf/ with options of groups, composed by Hydra, and the option of each group."""
    with hydra():
        composed = compose("config", overrides=list(options), return_hydra_config=True)
    choices = {key: str(value) for key, value in composed.hydra.runtime.choices.items() if "/" not in key}
    with open_dict(composed):
        del composed["hydra"]
    return composed, choices


def _with_values(composed: DictConfig, choices: dict[str, str], overrides: Sequence[Override]) -> dict[str, Any]:
    """Plain data of a composition with its values, and interpolations resolved unless one refers to a missing value.

    Raises:
        ConfigError: an unknown key.
    """
    composed = copy.deepcopy(composed)
    for override in overrides:
        if not _is_group(override):
            try:
                OmegaConf.update(composed, override.key_or_group, _value(override), merge=True)
            except (ConfigAttributeError, ConfigKeyError) as error:
                raise ConfigError(_unknown(override.key_or_group)) from error
    OmegaConf.set_struct(composed, False)
    for group, choice in choices.items():
        composed[group].setdefault("name", choice)
    try:
        content = OmegaConf.to_container(composed, resolve=True)
    except InterpolationToMissingValueError:
        content = OmegaConf.to_container(composed)
    assert isinstance(content, dict)
    return {str(key): value for key, value in content.items()}


def _value(override: Override) -> Any:
    """The value of an override; that of a quoted text refers to no other key."""
    value = override.value()
    if not isinstance(override._value, QuotedString):
        return value
    # OmegaConf keeps half of the backslashes before ${, and an odd number escapes ${.
    return re.sub(r"(\\*)\$\{", lambda match: rf"{2 * match[1]}\${{", str(value))


def _missing(content: Any, place: str = "") -> Iterator[str]:
    if isinstance(content, dict):
        for key, value in content.items():
            yield from _missing(value, f"{place}.{key}" if place else str(key))
    elif content == "???":
        yield place


def _take_vocabulary_size(content: Any, overrides: Sequence[Override]) -> None:
    """Set tokenizer.vocab_size to that of an existing model file, unless the user gave one."""
    settings = content["tokenizer"]
    is_given = any(override.key_or_group == "tokenizer.vocab_size" for override in overrides)
    if isinstance(settings.get("model_file"), str):
        size = vocabulary_size(settings["model_file"])
        settings["vocab_size"] = settings["vocab_size"] if size is None or is_given else size


def quoted(text: str) -> str:
    """Quotes a text, so that the value of an override is exactly this text."""
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
        raise ConfigError("\n".join(map(describe, details_of(error)))) from error


def load_option(group: str, option: str, section: type[AnySection]) -> AnySection:
    """A single option of a group, such as the pairs of `inter_sentence: nsp`, on which other runs are scored."""
    content = OmegaConf.to_container(OmegaConf.load(paths.conf_file(f"{group}/{option}.yaml")), resolve=True)
    assert isinstance(content, dict)
    return section.model_validate_json(json.dumps(content | {"name": option}))


def _keys(section: type[BaseModel] = RunConfig, prefix: str = "") -> Iterator[str]:
    for name, field in section.model_fields.items():
        yield prefix + name
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            yield from _keys(field.annotation, f"{prefix}{name}.")


def _unknown(key: str) -> str:
    section, _, last = key.rpartition(".")
    siblings = [name.removeprefix(f"{section}.") for name in _keys() if section and name.startswith(f"{section}.")]
    if last in siblings:
        return f"{key} is no key of this option of {section}; `albert-lab config show` prints those it has"
    if siblings:
        return f"unknown key {key}; {section} has {', '.join(name for name in siblings if name != 'name')}"
    if section in groups():
        return (
            f"unknown key {key}: this option of {section} has no {last}; the options are {', '.join(groups()[section])}"
        )
    known = [*_keys(), *groups()]
    near = [name for name in known if name.rpartition(".")[2] == last] or difflib.get_close_matches(key, known, n=1)
    return f"unknown key {key}; " + (
        f"did you mean {near[0]}?" if near else "`albert-lab config show` prints every key"
    )


def _explain(error: Exception) -> str:
    """The message of Hydra or OmegaConf in one line, or the allowed options."""
    text = str(error).split("\nSee https://")[0].strip()
    if option := re.search(r"(?:In '[^']*': )?Could not find '(\w+)/([^']+)'", text):
        return _unknown_option(*option.groups())
    return re.sub(r"\s*\n\s*", "; ", text)


def _unknown_option(group: str, value: str) -> str:
    options = groups().get(group, [])
    near = difflib.get_close_matches(value, options, n=1)
    hint = f"; did you mean {group}={near[0]}?" if near else ""
    return f"{group}={value} is unknown{hint} (allowed: {', '.join(options)})"


def parse(overrides: Sequence[str]) -> list[Override]:
    """Parses overrides in Hydra's grammar (`a=1,2`, `range(0,5)`, `glob(*)`, quoting).

    Raises:
        ConfigError: a text that is not an override, the removal of a key, a setting of Hydra, or an option of a group
            that is not a name.
    """
    return [_parse(text) for text in overrides]


@paths.until_conf_changes  # Hydra takes a millisecond, and the runs of a sweep repeat each value
def _parse(text: str) -> Override:
    if not re.match(r"[^=]+=", text) and not text.startswith("~"):
        raise ConfigError(f"{text!r} is not of the form KEY=VALUE")
    try:
        with hydra():
            parser = OverridesParser.create(config_loader=GlobalHydra.instance().config_loader())
            (override,) = parser.parse_overrides([text])
    except (HydraException, ValueError) as error:  # ValueError: a number of thousands of digits
        remedy = "a value with other characters than letters, digits and ._/:- needs quotes of its own"
        example = f"{text.split('=')[0]}='...'"
        raise ConfigError(
            f'{text[:200]!r} cannot be read as KEY=VALUE: {_explain(error)}; {remedy}: "{example}"'
        ) from error
    _refuse_unusable(override)
    return override


def _refuse_unusable(override: Override) -> None:
    if override.is_delete():
        raise ConfigError(f"{override.input_line}: a key cannot be removed; every key is needed")
    key = override.key_or_group
    if re.match(r"hydra\b", key):
        raise ConfigError(f"unknown key {key}")
    options = groups().get(key)
    if options and not override.is_sweep_override():
        value = override.value()
        if not isinstance(value, str):
            raise ConfigError(f"{override.input_line}: {key} must be one of {', '.join(options)}")
        if {"/", "\\"} & set(value):  # a path to any file
            raise ConfigError(_unknown_option(key, value))


def axes(overrides: Sequence[str]) -> dict[str, list[str]]:
    """Each overridden key with its values as override texts: one value if it is fixed, several if it is swept.

    Raises:
        ConfigError: a text that is not an override, a value or a list of values that is given twice, or an interval,
            which is not a list of values.
    """
    values: dict[str, list[str]] = {}
    for override in parse(overrides):
        key = override.get_key_element()
        if key in values and (override.is_sweep_override() or len(values[key]) > 1):
            raise ConfigError(f"{key} is given twice, once with several values: list all of them once, {key}=a,b")
        if override.is_sweep_override():
            value = override.value()
            if isinstance(value, Sweep) and override.is_interval_sweep():
                raise ConfigError(f"{override.input_line}: an interval is not a list of values; list them: a,b,c")
            try:
                values[key] = list(itertools.islice(override.sweep_string_iterator(), MAX_POINTS + 1))
            except ValueError as error:  # range() with a step of 0
                raise ConfigError(f"{override.input_line}: {error}") from error
            if not values[key]:
                raise ConfigError(f"{override.input_line} has no value")
            if len(values[key]) > MAX_POINTS:
                raise ConfigError(f"{override.input_line} has more than {MAX_POINTS:,} values, which is the limit")
            value, count = Counter(values[key]).most_common(1)[0]
            if count > 1:
                raise ConfigError(f"{override.input_line}: {key}={value} is given twice")
        else:
            values[key] = [str(override.get_value_element_as_str())]
    return values


def expand(grid: dict[str, list[str]]) -> list[dict[str, str]]:
    """The points of a grid: every combination of its values; the last axis varies fastest."""
    return [dict(zip(grid, values, strict=True)) for values in itertools.product(*grid.values())]


def complete(incomplete: str) -> list[str]:
    """Overrides that begin with a text, for shell completion; empty if there are none."""
    from hydra.plugins.completion_plugin import DefaultCompletionPlugin

    with hydra():
        loader = GlobalHydra.instance().config_loader()
        return DefaultCompletionPlugin(loader)._query("config", incomplete)
