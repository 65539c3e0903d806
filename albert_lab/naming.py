"""Names that become files and folders: one rule for experiments, runs, options, tasks and report places."""

from typing import Annotated

from pydantic import AfterValidator

# In bytes: file systems take 255, and suffixes are added to a name.
LONGEST = 150


def check_name(name: str) -> str:
    """The name, which must be one plain path component: nothing that leads into another folder or is hidden.

    Raises:
        ValueError: it is empty, begins with a dot, has a separator or an unprintable character, or is too long.
    """
    shown = name if len(name) <= 60 else f"{name[:57]}..."
    if not name or name.startswith(".") or not name.isprintable() or {"/", "\\"} & set(name):
        raise ValueError(
            f"{shown!r} is no name: letters, digits and signs, without / and \\, and not beginning with a dot"
        )
    try:
        size = len(name.encode())
    except UnicodeEncodeError as error:
        raise ValueError(f"{shown!r} is no name: it is badly encoded") from error
    if size > LONGEST:
        raise ValueError(f"{shown!r} is no name: it has {size} bytes, and at most {LONGEST} are allowed")
    return name


Name = Annotated[str, AfterValidator(check_name)]
