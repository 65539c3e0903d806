"""Readers of our file formats: any damage is reported by one error with file, place and remedy.

The formats are JSON, JSON Lines, YAML and arrays of numbers. A file may be truncated, overwritten
or malicious: none of these leads to a traceback, and no content of a file is executed.
"""

import io
import json
import re
import zipfile
import zlib
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

from pydantic import TypeAdapter, ValidationError

from albert_lab.errors import DamagedFileError

if TYPE_CHECKING:  # takes a while to import, and only arrays need it
    import numpy as np

T = TypeVar("T")

MAX_DEPTH = 64  # of YAML


def read_bytes(file: Path, remedy: str = "") -> bytes:
    """The content of a file.

    Raises:
        DamagedFileError: the file cannot be read, or is none, but a folder, a pipe or a device, which may have no end.
    """
    if file.exists() and not file.is_file():
        raise DamagedFileError(file, "is no ordinary file", remedy)
    try:
        return file.read_bytes()
    except (OSError, ValueError) as error:  # ValueError: a name with a NUL
        raise DamagedFileError(file, f"cannot be read: {getattr(error, 'strerror', None) or error}", remedy) from error


def read_text(file: Path, remedy: str = "") -> str:
    """The text of a file in UTF-8.

    Raises:
        DamagedFileError: the file cannot be read, or is not UTF-8.
    """
    content = read_bytes(file, remedy)
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        bad = content[error.start]
        raise DamagedFileError(file, f"line {line}: not UTF-8 (byte 0x{bad:02x})", remedy) from error


def read_json(file: Path, form: type[T], remedy: str = "") -> T:
    """The content of a JSON file, checked against a form: a pydantic model, or a type such as dict[str, int].

    Raises:
        DamagedFileError: the file cannot be read, is truncated, or has another form.
    """
    return _validate(file, read_bytes(file, remedy), form, remedy)


def read_json_lines(file: Path, form: type[T], remedy: str = "") -> list[T]:
    """The lines of a JSON Lines file; a truncated last line (after a kill) is ignored.

    Raises:
        DamagedFileError: the file cannot be read, or another line is not JSON of this form.
    """
    *lines, rest = read_bytes(file, remedy).split(b"\n")
    records = [_validate(file, line, form, remedy, number) for number, line in enumerate(lines, 1)]
    try:
        return [*records, _adapter(form).validate_json(rest)] if rest else records
    except ValidationError:
        return records


def read_yaml(file: Path, remedy: str = "") -> dict[str, Any]:
    """The keys of a YAML file as plain data; interpolations are not resolved.

    OmegaConf reads the file, since PyYAML reads 1e-4 as text.

    Raises:
        DamagedFileError: the file cannot be read, is not YAML, has no keys, or too much nesting or too many aliases.
    """
    from omegaconf import OmegaConf
    from omegaconf.errors import OmegaConfBaseException
    from yaml import YAMLError

    text = read_text(file, remedy)
    try:
        _check_yaml(text)
        content = OmegaConf.to_container(OmegaConf.load(io.StringIO(text)), resolve=False) if text.strip() else None
    except (YAMLError, OmegaConfBaseException, ValueError, OSError, RecursionError) as error:
        raise DamagedFileError(file, f"cannot be read as YAML: {_first_lines(error)}", remedy) from error
    if not isinstance(content, dict):
        raise DamagedFileError(file, "has no keys", remedy)
    return cast(dict[str, Any], content)


def _check_yaml(text: str) -> None:
    """Raise ValueError for content that exhausts memory or stack: nesting, and aliases, whose few can mean billions."""
    import yaml

    depth = 0
    for event in yaml.parse(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if isinstance(event, yaml.AliasEvent):
            raise ValueError(f"the alias *{event.anchor}: write its value in its place")
        if depth > MAX_DEPTH:
            raise ValueError(f"nested more than {MAX_DEPTH} deep")


def read_arrays(file: Path, remedy: str = "") -> "dict[str, np.ndarray]":
    """The arrays of an .npz file by name; nothing in it is unpickled.

    Raises:
        DamagedFileError: the file cannot be read, or contains anything else.
    """
    import numpy as np

    content = io.BytesIO(read_bytes(file, remedy))
    damage = (ValueError, TypeError, OSError, EOFError, KeyError, MemoryError, RuntimeError)
    try:
        arrays = np.load(content, allow_pickle=False)
        if not isinstance(arrays, np.lib.npyio.NpzFile):
            raise ValueError("a single array without a name")
        return dict(arrays)
    except (*damage, SyntaxError, zipfile.BadZipFile, zlib.error) as error:
        raise DamagedFileError(file, f"not an .npz file of arrays: {_first_lines(error)}", remedy) from error


def check(file: Path, content: Any, form: type[T], remedy: str = "") -> T:
    """Checks plain data from a file, such as the keys of YAML, against a form.

    Raises:
        DamagedFileError: the data has another form.
    """
    try:
        return _adapter(form).validate_python(content)
    except ValidationError as error:
        raise DamagedFileError(file, _describe(error), remedy) from error


def _validate(file: Path, content: bytes, form: type[T], remedy: str, line: int | None = None) -> T:
    try:
        return _adapter(form).validate_json(content)
    except ValidationError as error:
        place = "" if line is None else f"line {line}: "
        raise DamagedFileError(file, place + _describe(error), remedy) from error


@cache
def _adapter(form: type[T]) -> TypeAdapter[T]:
    return TypeAdapter(form)


def _describe(error: ValidationError) -> str:
    """The first of pydantic's errors in one line, and the number of the others."""
    details = details_of(error)
    return describe(details[0]) + (f" (and {len(details) - 1} more)" if len(details) > 1 else "")


def details_of(error: ValidationError) -> list[Any]:
    """Pydantic's errors, without that of a list that is too short only because its values are invalid."""
    details = error.errors(include_url=False)
    wrong = [detail["loc"] for detail in details if detail["type"] != "too_short"]
    return [
        detail
        for detail in details
        if detail["type"] != "too_short" or all(loc[: len(detail["loc"])] != detail["loc"] for loc in wrong)
    ]


def describe(detail: Any, key: str | None = None) -> str:
    """A detail of a pydantic.ValidationError in one line: the key, its value and the allowed values.

    Args:
        key: the key as the user knows it, where pydantic has another one.
    """
    key = ".".join(str(part) for part in detail["loc"]) if key is None else key
    match detail["type"]:
        case "json_invalid":
            return f"invalid or truncated JSON: {detail['ctx']['error']}"
        case "extra_forbidden":
            return f"unknown key {key}"
        case "missing":
            return f"{key} is missing"
        case "value_error":
            said = str(detail["ctx"]["error"])
            return said if not key or said.startswith((f"{key}=", f"{key}.")) else f"{key}: {said}"
    value = detail["input"]
    text = value if isinstance(value, str) else json.dumps(value, default=str, ensure_ascii=False)
    shown = text if len(text) <= 60 else text[:57] + "..."
    return f"{key}={shown}: {detail['msg']}" if key else detail["msg"]


def _first_lines(error: Exception) -> str:
    text = re.sub(r"\s+", " ", str(error)).strip() or type(error).__name__
    return text if len(text) <= 300 else text[:297] + "..."
