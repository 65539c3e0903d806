"""The answers of a run to each pair of its held-out sets, as short texts that its record keeps."""

import zlib
from base64 import b64decode, b64encode
from typing import Annotated

import numpy as np
from pydantic import AfterValidator

from albert_lab.record import Record


def pack(array: np.ndarray) -> str:
    """A one-dimensional array as text: type, length, and compressed values; whole numbers take as few bytes as fit."""
    if np.issubdtype(array.dtype, np.integer):
        array = array.astype(np.min_scalar_type(int(array.max(initial=0))))
    content = np.packbits(array) if array.dtype == bool else array
    return f"{array.dtype} {len(array)} {b64encode(zlib.compress(content.tobytes(), 9)).decode()}"


def unpack(text: str) -> np.ndarray:
    """The array of a text as pack() returns it; floating-point numbers as float64, whole ones as int64.

    Raises:
        ValueError: another text.
    """
    kind, length, content = text.split(" ")
    count = int(length)
    try:
        values = zlib.decompress(b64decode(content, validate=True))
        dtype = np.dtype(kind)
    except (zlib.error, TypeError) as error:
        raise ValueError(f"no packed answers: {error}") from error
    if kind == "bool":
        if count < 0 or len(values) != -(-count // 8):
            raise ValueError(f"{len(values)} bytes of packed answers, not those of {length}")
        return np.unpackbits(np.frombuffer(values, np.uint8), count=count).astype(bool)
    array = np.frombuffer(values, dtype)
    if len(array) != count:
        raise ValueError(f"{len(array)} packed answers, not {length}")
    return array.astype(np.float64 if dtype.kind == "f" else np.int64)


def _checked(text: str) -> str:
    unpack(text)
    return text


Packed = Annotated[str, AfterValidator(_checked)]


class Answers(Record):
    """The answers of one score, each field packed with one value per pair, in the order of the set.

    Attributes:
        pairs: the name of the measure whose set it is. Scores of one set are paired answer by answer, also between runs
            with the same evaluation set; so are those of different sets that a measure pairs (such as coherence).
        right: the number of right answers: of the pair (bool), or of its masked tokens.
        n: the number of answers; None: one per pair.
        loss: the sum of the losses of these answers in nats, to 3 digits; None: not kept.
        floor: whether the floor of each segment by itself is right; None: no such floor, or kept with another score.
        source: the number of the source document; None: kept with another score of the same set.
    """

    pairs: str
    right: Packed
    n: Packed | None = None
    loss: Packed | None = None
    floor: Packed | None = None
    source: Packed | None = None
