"""Our files: what all records share, and readers that report any damage by one error with file,
place and remedy.

The formats are JSON, YAML and arrays of numbers. A file may be truncated, overwritten or malicious:
none of these leads to a traceback, and no content of a file is executed.
"""

import hashlib
import io
import json
import textwrap
from collections import Counter
from collections.abc import Collection, Hashable, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, ClassVar, Self, TypeVar, cast

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    StringConstraints,
    TypeAdapter,
    ValidationError,
    model_validator,
)

from albert_lab.errors import DamagedFileError

T = TypeVar("T")
_MOST_PARTS = 100_000  # of a YAML file; reading takes a second for each ten thousand


class Record(BaseModel):
    """A part of a file: frozen, without unknown keys and without numbers that are not finite."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


def ten_digits(number: str) -> str:
    """A number of a JSON file with ten digits, as reports have: no mean shows more."""
    return f"{float(number):.10g}"


class Signed(Record):
    """A record with the digest of its numbers: a file that was edited is no record.

    Attributes:
        SIGNED: the fields with the numbers.
        digest: set by signed(); None in older files.
    """

    SIGNED: ClassVar[frozenset[str]]
    digest: str | None = Field(default=None, exclude_if=lambda digest: digest is None)

    def signed(self) -> Self:
        return self.model_copy(update={"digest": self._digest_of_numbers()})

    def _digest_of_numbers(self) -> str:
        """The digest of numbers with the digits that reports have; those that are not there do not
        count, so that a further optional one changes none.
        """
        text = self.model_dump_json(include=set(self.SIGNED), exclude_none=True)
        numbers = json.loads(text, parse_float=ten_digits, parse_int=ten_digits)
        return digest_of(json.dumps(numbers, sort_keys=True, ensure_ascii=False).encode())

    @model_validator(mode="after")
    def _has_its_numbers(self) -> Self:
        if self.digest and self.digest != self._digest_of_numbers():
            raise ValueError(f"changed by hand: {', '.join(sorted(self.SIGNED))}")
        return self


def check_distinct(values: Sequence[Hashable] | None) -> Sequence[Hashable] | None:
    """Returns values if no two of them are equal, or ValueError."""
    if twice := [value for value, count in Counter(values or ()).items() if count > 1]:
        raise ValueError(f"{twice[0]} is given twice")
    return values


def check_known(key: str, value: str, known: Collection[str]) -> None:
    """Raises ValueError unless the value of a key is among the known ones."""
    if value not in known:
        near = get_close_matches(value, known, n=1)
        hint = f"did you mean {near[0]}?" if near else f"allowed: {', '.join(filter(None, known))}"
        raise ValueError(f"{key}={value} is unknown ({hint})")


# A visible path component that cannot lead into another folder. File systems allow 255 bytes, and
# suffixes are added.
Name = Annotated[
    str, StringConstraints(pattern=r"^[^./\\\x00-\x1f][^/\\\x00-\x1f]*$", max_length=150)
]
Distinct = AfterValidator(check_distinct)


def read_bytes(file: Path, remedy: str = "") -> bytes:
    """The content of a file.

    Raises:
        DamagedFileError: the file cannot be read, or is none, but a folder, a pipe or a device,
            which may have no end.
    """
    if not is_ordinary(file):
        raise DamagedFileError(file, "is no ordinary file", remedy)
    try:
        return file.read_bytes()
    except (OSError, ValueError) as error:  # ValueError: a name with a NUL
        raise DamagedFileError(
            file, f"cannot be read: {getattr(error, 'strerror', error)}", remedy
        ) from error


def is_ordinary(file: Path) -> bool:
    """Whether a path is a file with an end, or a link to one, or nothing: no folder, pipe or
    device, and not in /proc.
    """
    is_there = file.exists() or file.is_symlink()
    return not is_there or (file.is_file() and file.absolute().parts[:2] != ("/", "proc"))


def digest_of(content: bytes) -> str:
    """Short hash of a file's content."""
    return hashlib.blake2b(content, digest_size=6).hexdigest()


def read_json(file: Path, form: type[T], remedy: str = "") -> T:
    """The content of a JSON file, by read_bytes() and check()."""
    return check(file, read_bytes(file, remedy), form, remedy)


def read_yaml(file: Path, remedy: str = "") -> dict[str, Any]:
    """The keys of a YAML file as plain data; interpolations are not resolved.

    OmegaConf reads the file, since PyYAML reads 1e-4 as text.

    Raises:
        DamagedFileError: the file cannot be read, is not YAML, has no keys, too many parts, or an
            alias: a few could mean billions of values.
    """
    import yaml
    from omegaconf import OmegaConf
    from omegaconf.errors import OmegaConfBaseException

    text = read_bytes(file, remedy)
    try:
        loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
        for number, event in enumerate(yaml.parse(text, Loader=loader)):
            if isinstance(event, yaml.AliasEvent):
                raise ValueError("an alias: write the values in its place")
            if number > _MOST_PARTS:
                raise ValueError(f"it has more than {_MOST_PARTS:,} keys and values")
        content = OmegaConf.to_container(OmegaConf.load(io.StringIO(text.decode())))
    except (yaml.YAMLError, OmegaConfBaseException, ValueError, OSError, RecursionError) as error:
        raise DamagedFileError(
            file, f"cannot be read as YAML: {_in_one_line(error)}", remedy
        ) from error
    if not (content and isinstance(content, dict)):
        raise DamagedFileError(file, "has no keys", remedy)
    return cast(dict[str, Any], content)


def check(file: Path, content: Any, form: type[T], remedy: str = "") -> T:
    """Checks JSON (bytes) or plain data from a file against a form: a pydantic model, or a type
    such as dict[str, int].

    Raises:
        DamagedFileError: the content is truncated, or has another form.
    """
    adapter = TypeAdapter(form)
    validate = adapter.validate_json if isinstance(content, bytes) else adapter.validate_python
    try:
        return validate(content)
    except ValidationError as error:
        # a typo comes first
        errors = sorted(error.errors(), key=lambda detail: detail["type"] != "extra_forbidden")
        first, *more = map(describe, errors)
        raise DamagedFileError(
            file, first + f" (and {len(more)} more)" * bool(more), remedy
        ) from error


def describe(detail: Any) -> str:
    """A detail of a pydantic.ValidationError in one line: the key, its value and the allowed
    values.
    """
    key = ".".join(str(part) for part in detail["loc"])
    said = (
        detail["msg"]
        .removeprefix("Value error, ")
        .replace("Extra inputs are not permitted", "there is no such key")
    )
    if not key or said.startswith((f"{key}=", f"{key}.")):
        return said
    if detail["type"] in ("value_error", "missing"):  # its value is that of the whole part
        return f"{key}: {said}"
    # null and true, as in YAML
    value = json.dumps(detail["input"], ensure_ascii=False, default=str).strip('"')
    return f"{key}={value:.60}: {said}"


def _in_one_line(error: Exception) -> str:
    return textwrap.shorten(str(error) or type(error).__name__, 300, placeholder="...")
