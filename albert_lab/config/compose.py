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
from omegaconf.errors import InterpolationToMissingValueError, OmegaConfBaseException
from pydantic import BaseModel, ValidationError

from albert_lab import paths
from albert_lab.config.data import check_added
from albert_lab.config.interpolation import REFERRED, hydra
from albert_lab.config.schema import RunConfig
from albert_lab.config.section import AnySection
from albert_lab.config.vocabulary import vocabulary_size
from albert_lab.errors import ConfigError
from albert_lab.files import describe, details_of
from albert_lab.registry import own, until_included

# Limit of a sweep: each run takes a tenth of a second to compose, and has a separate folder.
MAX_POINTS = 10_000


@until_included
def groups() -> dict[str, list[str]]:
    """Every configuration group with its options, read from file names: those of conf/, then those of the user."""
    options: dict[str, list[str]] = {}
    for file in paths.conf_files("*/*.yaml"):
        if file.parent.name != "task":  # no settings of a run
            options.setdefault(file.parent.name, []).append(file.stem)
    options["optimizer"] = [
        *options["optimizer"],
        *(name for name in own("optimizer") if name not in options["optimizer"]),
    ]
    return options


def load(overrides: Sequence[str] = ()) -> RunConfig:
    """The configuration of one run, composed from conf/ and `key=value` overrides.

    Raises:
        ConfigError: an unknown key or option, a wrong type, or an invalid value; the message has key and value.
    """
    config = _composed(tuple(overrides))
    # The size of its vocabulary is that of the file, which may have changed.
    return config if config.tokenizer.model_file is None else _compose(tuple(overrides))


def _compose(overrides: tuple[str, ...]) -> RunConfig:
    content = content_of(overrides)
    del content["launcher"]  # setting of the command, not of the run: config/launcher.py
    return validate(content).with_own_code()


_composed = until_included(_compose)  # tables compose the same configurations many times; frozen models can be shared


def content_of(overrides: tuple[str, ...]) -> dict[str, Any]:
    """The whole configuration as plain data, with `key=value` overrides.

    Raises:
        ConfigError: see load().
    """
    parsed = parse(overrides)
    for override in parsed:
        if override.is_sweep_override():
            raise ConfigError(f"{override.input_line} has several values, but a run allows only one")
    try:
        content = with_scalars(parsed)
        content = content or _plain(*(with_values(parsed) or _of_hydra(tuple(map(_literal, parsed)))))
        if "include" in content:  # what a process executes is a file that somebody named
            raise ConfigError("include is no key of the configuration; name a file of own code: --include FILE.py")
        missing = sorted(_missing(content))
        if missing:
            raise ConfigError("; ".join(f"{key} must be given: {key}=VALUE" for key in missing))
        _take_vocabulary_size(content, overrides)
        check_added(
            content["added_corpus"], is_chosen=any(override.key_or_group == "added_corpus" for override in parsed)
        )
    except (HydraException, OmegaConfBaseException) as error:
        raise ConfigError(_explain(error)) from error
    return content


def _plain(composed: DictConfig, choices: dict[str, str]) -> dict[str, Any]:
    """Plain data of a composition, its interpolations resolved unless one refers to a missing value."""
    OmegaConf.set_struct(composed, False)
    for group, choice in choices.items():
        if "name" not in composed[group]:
            OmegaConf.update(composed, f"{group}.name", choice)
    try:
        content = OmegaConf.to_container(composed, resolve=True)
    except InterpolationToMissingValueError:
        content = OmegaConf.to_container(composed)
    assert isinstance(content, dict)
    return {str(key): value for key, value in content.items()}


def _missing(content: Any, place: str = "") -> Iterator[str]:
    if isinstance(content, dict):
        for key, value in content.items():
            yield from _missing(value, f"{place}.{key}" if place else str(key))
    elif content == "???":
        yield place


def with_values(overrides: Sequence[Override]) -> tuple[DictConfig, dict[str, str]] | None:
    """The result of _of_hydra() in a tenth of its time: its cached composition of the options, with the values set.

    None for overrides that only Hydra can process: `+key=value`, packages, quoted interpolations and errors.
    """
    if any(override.is_add() or override.is_force_add() or override.package is not None for override in overrides):
        return None
    if any(_literal(override) != override.input_line for override in overrides):
        return None
    options, values = _divided(overrides)
    try:
        kept, choices = _of_options(options)
        composed = copy.deepcopy(kept)
        for override in values:
            OmegaConf.update(composed, override.key_or_group, override.value(), merge=True)
    except (HydraException, OmegaConfBaseException):
        return None
    return composed, choices


def with_scalars(overrides: Sequence[Override]) -> dict[str, Any] | None:
    """The result of with_values() as plain data, in a tenth of its time: the values are set in cached plain data.

    None for overrides of anything but scalars to which no interpolation refers.
    """
    options, values = _divided(overrides)
    if any(override.is_add() or override.is_force_add() or override.package is not None for override in overrides):
        return None
    try:
        kept, referred = _plain_options(options)
    except (HydraException, OmegaConfBaseException):
        return None
    content = copy.deepcopy(kept)
    for override in values:
        *sections, name = override.key_or_group.split(".")
        value: Any = override.value()
        section: Any = content
        for key in sections:
            section = section.get(key) if isinstance(section, dict) else None
        is_scalar = value is None or isinstance(value, bool | int | float | str)
        if not is_scalar or "${" in str(override.input_line) or referred & {*sections, name} or name == "name":
            return None
        if not isinstance(section, dict) or name not in section or isinstance(section[name], dict | list):
            return None
        section[name] = value
    return content


def _divided(overrides: Sequence[Override]) -> tuple[tuple[str, ...], list[Override]]:
    """The texts of the options of groups, sorted, and the overrides of values."""
    known = groups()
    # If an option is given twice, the last one counts.
    options = {
        override.key_or_group: str(override.input_line) for override in overrides if override.key_or_group in known
    }
    return tuple(sorted(options.values())), [override for override in overrides if override.key_or_group not in known]


@until_included
def _plain_options(options: tuple[str, ...]) -> tuple[dict[str, Any], frozenset[str]]:
    """Plain data of the options of groups, and every word in their interpolations."""
    composed, choices = copy.deepcopy(_of_options(options))
    texts = re.findall(r'"(?:[^"\\]|\\.)*"', json.dumps(OmegaConf.to_container(composed)))
    words = re.findall(r"\w+", " ".join(text for text in texts if "${" in text))
    return _plain(composed, choices), REFERRED.union(words)


def _of_hydra(overrides: tuple[str, ...]) -> tuple[DictConfig, dict[str, str]]:
    """conf/ with overrides, composed by Hydra, and the option of each group."""
    with hydra():
        composed = compose("config", overrides=list(overrides), return_hydra_config=True)
    choices = {key: str(value) for key, value in composed.hydra.runtime.choices.items() if "/" not in key}
    with open_dict(composed):
        del composed["hydra"]
    return composed, choices


_of_options = until_included(_of_hydra)


def _take_vocabulary_size(content: Any, overrides: tuple[str, ...]) -> None:
    """Set tokenizer.vocab_size to that of an existing model file, unless the user gave one."""
    settings = content["tokenizer"]
    is_given = any(re.match(r"\+*tokenizer\.vocab_size=", override) for override in overrides)
    if isinstance(settings.get("model_file"), str):
        size = vocabulary_size(settings["model_file"])
        settings["vocab_size"] = settings["vocab_size"] if size is None or is_given else size


def quoted(text: str) -> str:
    """Quotes a text, so that the value of an override is exactly this text."""
    return QuotedString(text=text, quote=Quote.single).with_quotes()


def _literal(override: Override) -> str:
    """The text of an override with escaped ${...} in a quoted value, so that it does not refer to another key."""
    line, value = str(override.input_line), override._value
    if not isinstance(value, QuotedString) or "${" not in value.text:
        return line
    # OmegaConf keeps half of the backslashes before ${, and an odd number escapes ${.
    text = re.sub(r"(\\*)\$\{", lambda match: rf"{2 * match[1]}\${{", value.text)
    return f"{line.split('=', 1)[0]}={quoted(text)}"


def validate(content: Any) -> RunConfig:
    """A frozen RunConfig from plain data that was composed or read from run.yaml.

    Raises:
        ConfigError: every invalid key, with its value and the allowed values.
    """
    try:
        # JSON mode: lists become tuples, and numbers stay strict.
        return RunConfig.model_validate_json(json.dumps(content))
    except ValidationError as error:
        details = [
            _unknown(_key(detail)) if detail["type"] == "extra_forbidden" else describe(detail)
            for detail in details_of(error)
        ]
        raise ConfigError("\n".join(details)) from error


def load_option(group: str, option: str, section: type[AnySection]) -> AnySection:
    """A single option of a group, such as the pairs of `inter_sentence: nsp`, on which other runs are scored."""
    content = OmegaConf.to_container(OmegaConf.load(paths.conf_file(f"{group}/{option}.yaml")), resolve=True)
    assert isinstance(content, dict)
    return section.model_validate_json(json.dumps(content | {"name": option}))


def _key(detail: Any) -> str:
    return ".".join(str(part) for part in detail["loc"])


def _known_keys() -> list[str]:
    def walk(section: type[BaseModel], prefix: str) -> Iterator[str]:
        for name, field in section.model_fields.items():
            yield prefix + name
            if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
                yield from walk(field.annotation, f"{prefix}{name}.")

    keys = [key for key in walk(RunConfig, "") if not key.endswith(".name") and not key.startswith("scale.")]
    return [*keys, *_launcher_keys()]


def _launcher_keys() -> dict[str, list[str]]:
    """The keys of the launchers, each with the options that define it."""
    files_of: dict[str, list[str]] = {}
    for file in paths.conf_files("launcher/*.yaml"):
        for key in OmegaConf.load(file):
            files_of.setdefault(f"launcher.{key}", []).append(file.stem)
    return files_of


def _unknown(key: str) -> str:
    if options := _launcher_keys().get(key):
        return f"{key} needs launcher={' or '.join(options)}"
    known = [*_known_keys(), *groups()]
    if key in known:
        return f"{key} is no key of this option of {key.split('.')[0]}; `albert-lab config show` prints those it has"
    last = key.rpartition(".")[2]
    section = key.removesuffix(last)
    siblings = [k.removeprefix(section) for k in known if section and k.startswith(section)]
    near = (
        [k for k in known if k.rpartition(".")[2] == last]
        or [section + k for k in difflib.get_close_matches(last, siblings, n=1, cutoff=0.25)]
        or difflib.get_close_matches(key, [] if siblings else known, n=1)
    )
    if near:
        return f"unknown key {key}; did you mean {near[0]}?"
    return f"unknown key {key}; " + (
        f"{section}* has {', '.join(siblings)}" if siblings else "see `albert-lab config show`"
    )


def _explain(error: Exception) -> str:
    text = str(error).split("\nSee https://")[0].strip()
    unknown = re.search(r"Could not override '([^']+)'", text)
    if unknown:
        return _unknown(unknown.group(1))
    option = re.search(r"(?:In '[^']*': )?Could not find '(\w+)/([^']+)'", text)
    if option:
        return _unknown_option(*option.groups())
    place = re.search(r"\n\s*full_key: (\S+)", text)
    if place:
        cause = text[: place.start()].removeprefix("ConfigError raised while resolving interpolation: ")
        return f"{place.group(1)}: {cause}"
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


@until_included  # Hydra takes a millisecond, and the runs of a sweep repeat each value
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
