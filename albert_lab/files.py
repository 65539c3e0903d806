"""Our files: what all records share, and readers that report any damage by one error with file, place and remedy.

The formats are JSON, YAML and arrays of numbers. A file may be truncated, overwritten
or malicious: none of these leads to a traceback, and no content of a file is executed.
"""

import io
import json
import textwrap
from collections import Counter
from collections.abc import Hashable, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, cast

from pydantic import AfterValidator, BaseModel, ConfigDict, TypeAdapter, ValidationError

from albert_lab.errors import DamagedFileError

if TYPE_CHECKING:  # takes a while to import, and only arrays need it
    import numpy as np

T = TypeVar("T")

LONGEST = 150  # name, in bytes: file systems allow 255, and suffixes are added


class Record(BaseModel):
    """A part of a file: frozen, without unknown keys and without numbers that are not finite."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


def check_name(name: str) -> str:
    """Returns the name if it is a single visible path component that cannot lead into another folder.

    Raises:
        ValueError: empty, with a dot at its start, a separator or an unprintable character, or too long.
    """
    is_plain = name.isprintable() and not name.startswith(".") and not {"/", "\\"} & set(name)
    if not is_plain or not 0 < len(name.encode()) <= LONGEST:
        allowed = f"1 to {LONGEST} bytes of printable text, without / and \\, and not beginning with a dot"
        raise ValueError(f"{name[:60]!r} is not a name: {allowed}")
    return name


def check_distinct(values: Sequence[Hashable] | None) -> Sequence[Hashable] | None:
    """Returns the values if no two of them are equal.

    Raises:
        ValueError: a value is given twice.
    """
    for value, count in Counter(values or ()).most_common(1):
        if count > 1:
            raise ValueError(f"{value} is given twice")
    return values


Name = Annotated[str, AfterValidator(check_name)]
Distinct = AfterValidator(check_distinct)


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
        raise DamagedFileError(file, f"cannot be read: {getattr(error, 'strerror', error)}", remedy) from error


def read_json(file: Path, form: type[T], remedy: str = "") -> T:
    """The content of a JSON file, checked against a form: a pydantic model, or a type such as dict[str, int].

    Raises:
        DamagedFileError: the file cannot be read, is truncated, or has another form.
    """
    return check(file, read_bytes(file, remedy), form, remedy)


def read_yaml(file: Path, remedy: str = "") -> dict[str, Any]:
    """The keys of a YAML file as plain data; interpolations are not resolved.

    OmegaConf reads the file, since PyYAML reads 1e-4 as text.

    Raises:
        DamagedFileError: the file cannot be read, is not YAML, has no keys, or too much nesting or too many aliases.
    """
    import yaml
    from omegaconf import OmegaConf
    from omegaconf.errors import OmegaConfBaseException

    written = read_bytes(file, remedy)
    try:
        text = written.decode()
        for event in yaml.parse(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)):
            if isinstance(event, yaml.AliasEvent):  # a few can mean billions of values
                raise ValueError(f"the alias *{event.anchor}: write its value in its place")
        content = OmegaConf.to_container(OmegaConf.load(io.StringIO(text)), resolve=False) if text.strip() else None
    except (yaml.YAMLError, OmegaConfBaseException, ValueError, OSError, RecursionError) as error:
        raise DamagedFileError(file, f"cannot be read as YAML: {_in_one_line(error)}", remedy) from error
    if not isinstance(content, dict):
        raise DamagedFileError(file, "has no keys", remedy)
    return cast(dict[str, Any], content)


def read_arrays(file: Path, remedy: str = "") -> "dict[str, np.ndarray]":
    """The arrays of an .npz file by name; nothing in it is unpickled.

    Raises:
        DamagedFileError: the file cannot be read, or contains anything else.
    """
    import numpy as np

    content = io.BytesIO(read_bytes(file, remedy))
    try:
        with np.load(content, allow_pickle=False) as arrays:  # a single array is no context
            return dict(arrays)
    except Exception as error:  # numpy does not say which there are
        raise DamagedFileError(file, f"not an .npz file of arrays: {_in_one_line(error)}", remedy) from error


def check(file: Path, content: Any, form: type[T], remedy: str = "") -> T:
    """Checks JSON (bytes) or plain data from a file, such as the keys of YAML, against a form.

    Raises:
        DamagedFileError: the content has another form.
    """
    adapter = _adapter(form)
    try:
        return adapter.validate_json(content) if isinstance(content, bytes) else adapter.validate_python(content)
    except ValidationError as error:
        first, *more = map(describe, details_of(error))
        others = f" (and {len(more)} more)" if more else ""
        raise DamagedFileError(file, f"{first}{others}", remedy) from error


@cache
def _adapter(form: type[T]) -> TypeAdapter[T]:
    return TypeAdapter(form)


def details_of(error: ValidationError) -> list[Any]:
    """Pydantic's errors, without that of a list that is too short only because its values are invalid."""
    details = error.errors(include_url=False)
    return [detail for detail in details if detail["type"] != "too_short"] or details


def describe(detail: Any) -> str:
    """A detail of a pydantic.ValidationError in one line: the key, its value and the allowed values."""
    key = ".".join(str(part) for part in detail["loc"])
    said = detail["msg"].removeprefix("Value error, ")
    if not key or said.startswith((f"{key}=", f"{key}.")):
        return said
    if detail["type"] in ("value_error", "missing"):  # its value is that of the whole part
        return f"{key}: {said}"
    value = json.dumps(detail["input"], ensure_ascii=False, default=str).strip('"')  # null and true, as in YAML
    return f"{key}={value if len(value) <= 60 else value[:57] + '...'}: {said}"


def _in_one_line(error: Exception) -> str:
    return textwrap.shorten(str(error) or type(error).__name__, 300, placeholder="...")
