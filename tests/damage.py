"""Damage to files, drawn by hypothesis: the result of a full disk, a kill, an editor or an
attack.
"""

import copy
import json
from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

from albert_lab.errors import FIXABLE

# Values that may replace an expected value.
STRANGE = [
    None,
    True,
    -1,
    0,
    10**30,
    1e308,
    float("nan"),
    float("inf"),
    "",
    "nan",
    "../x",
    "=1+1",
    "é\0",
    [],
    {},
    [[]],
]


# What is left of content after an accident at one place or between two, with some bytes of junk.
ACCIDENTS: list[Callable[[bytes, int, int, bytes], bytes]] = [
    lambda content, first, end, junk: content[:first],  # cut
    # overwritten
    lambda content, first, end, junk: content[:first] + junk + content[first + len(junk) :],
    lambda content, first, end, junk: content[:first] + junk + content[first:],  # inserted
    lambda content, first, end, junk: content[:first] + content[end:],  # removed
    lambda content, first, end, junk: content[:end] + content[first:],  # doubled
    lambda content, first, end, junk: content[:first] + bytes(len(content) - first),  # zeroed
]


@st.composite
def damaged(draw: st.DrawFn, content: bytes) -> bytes:
    """A file's content after one to three damages."""
    for _ in range(draw(st.integers(1, 3))):
        first, end = sorted(draw(st.tuples(*[st.integers(0, len(content))] * 2)))
        junk = draw(
            st.one_of(
                st.binary(max_size=8),
                st.sampled_from([b"[" * 9000, b"9" * 6000, b"\xff", b"\0", b","]),
            )
        )
        content = draw(st.sampled_from(ACCIDENTS))(content, first, end, junk)
    return content


@st.composite
def edited(draw: st.DrawFn, content: Any) -> Any:
    """Plain data in which one to three values were replaced, removed or added."""
    content = copy.deepcopy(content)
    for _ in range(draw(st.integers(1, 3))):
        place = content
        while isinstance(place, dict | list) and place:
            key = draw(
                st.sampled_from(sorted(place) if isinstance(place, dict) else range(len(place)))
            )
            inner = place[key]
            if not (isinstance(inner, dict | list) and inner and draw(st.booleans())):
                _edit(draw, place, key)
                break
            place = inner
    return content


def _edit(draw: st.DrawFn, place: Any, key: Any) -> None:
    what = draw(st.sampled_from(["replace", "replace", "remove", "add"]))
    strange = copy.deepcopy(draw(st.sampled_from(STRANGE)))
    if what == "remove":
        del place[key]
    elif what == "add" and isinstance(place, dict):
        place["strange"] = strange
    else:
        place[key] = strange


def as_json(content: Any) -> bytes:
    """Plain data as the content of a JSON file."""
    return json.dumps(content).encode()


def lines(*rows: dict) -> bytes:
    """The content of a file of JSON lines."""
    return b"".join(as_json(row) + b"\n" for row in rows)


def is_read_or_named(name: str, read: Callable[[], object]) -> bool:
    """Whether reading succeeds, or raises one of our errors with the name of the file and without
    pydantic's words.
    """
    try:
        read()
    except FIXABLE as error:
        return name in str(error) and "pydantic" not in str(error)
    return True
