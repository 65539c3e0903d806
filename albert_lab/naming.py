"""The rule for names of files and folders: experiments, runs, options, tasks and reports."""

from typing import Annotated

from pydantic import AfterValidator

# In bytes: file systems allow 255, and suffixes are added to a name.
LONGEST = 150


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
