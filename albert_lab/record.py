"""What all records in files share, and the rules for names and for lists without repetition."""

from collections import Counter
from collections.abc import Hashable, Sequence
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict

# In bytes: file systems allow 255, and suffixes are added to a name.
LONGEST = 150


class Record(BaseModel):
    """A part of a file: frozen, without unknown keys and without numbers that are not finite."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


def check_name(name: str) -> str:
    """Returns the name if it is a single visible path component that cannot lead into another folder.

    Raises:
        ValueError: empty, with a dot at its start, a separator or an unprintable character, or too long.
    """
    shown = name if len(name) <= 60 else f"{name[:57]}..."
    if not name or name.startswith(".") or not name.isprintable() or {"/", "\\"} & set(name):
        raise ValueError(
            f"{shown!r} is not a name: letters, digits and signs, without / and \\, and not beginning with a dot"
        )
    try:
        size = len(name.encode())
    except UnicodeEncodeError as error:
        raise ValueError(f"{shown!r} is not a name: it is badly encoded") from error
    if size > LONGEST:
        raise ValueError(f"{shown!r} is not a name: it has {size} bytes, and at most {LONGEST} are allowed")
    return name


Name = Annotated[str, AfterValidator(check_name)]


def check_distinct(values: Sequence[Hashable] | None) -> Sequence[Hashable] | None:
    """Returns the values if no two of them are equal.

    Raises:
        ValueError: a value is given twice.
    """
    for value, count in Counter(values or ()).most_common(1):
        if count > 1:
            raise ValueError(f"{value} is given twice")
    return values


Distinct = AfterValidator(check_distinct)
