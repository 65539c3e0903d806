"""Token ids on disk: flat memory-mapped files per split, with the offsets of sentences, documents
and their sources.
"""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import BaseModel, NonNegativeInt

from albert_lab import files
from albert_lab.data.corpus import Split
from albert_lab.data.tokenizer import Tokenizer
from albert_lab.errors import ConfigError, DamagedFileError

SPLITS: tuple[Split, ...] = ("train", "dev")
OFFSET = np.dtype("<i8")
_PARTS = ("tokens", "sentences", "documents", "sources")


@dataclass(frozen=True)
class Shards:
    """Token ids of one split, mapped from disk.

    Attributes:
        tokens: Token ids of all sentences, one after the other, uint16 or uint32 [num_tokens].
        sentence_offsets: First token of each sentence, then num_tokens, int64 [num_sentences + 1].
        document_offsets: First sentence of each document, then num_sentences, int64 [num_documents
            + 1].
        source_offsets: First document of each source document, then num_documents, int64
            [num_sources + 1].
        meta: Content of meta.json in the folder: counts, fingerprints, settings.
    """

    split: Split
    tokens: np.memmap
    sentence_offsets: np.memmap
    document_offsets: np.memmap
    source_offsets: np.memmap
    meta: dict[str, Any]

    @property
    def num_documents(self) -> int:
        return len(self.document_offsets) - 1

    @cached_property
    def is_of_single_sentences(self) -> bool:
        """Whether most documents have one sentence, so that few sentences have a neighbour:
        headlines, short posts.
        """
        return bool(2 * np.count_nonzero(np.diff(self.document_offsets) == 1) > self.num_documents)

    def source_of(self, documents: np.ndarray) -> np.ndarray:
        """The source document of each document, by number."""
        return np.searchsorted(self.source_offsets, documents, side="right") - 1

    def document_at(self, tokens: np.ndarray) -> np.ndarray:
        """The document of each token, which is given by its offset."""
        sentences = np.searchsorted(self.sentence_offsets, tokens, side="right") - 1
        return np.searchsorted(self.document_offsets, sentences, side="right") - 1


def open_shards(folder: Path, split: Split, tokenizer: Tokenizer | None = None) -> Shards:
    """Opens one split of prepared shards and checks that they were made by the given tokenizer, if
    any.

    Raises:
        ConfigError: another tokenizer made the shards.
        DamagedFileError: a file is missing, is incomplete or contradicts the others.
    """
    meta = read_meta(folder)
    if tokenizer and tokenizer.fingerprint != meta["model_fingerprint"]:
        raise ConfigError(
            f"the token shards in {folder} were made by another tokenizer: {_remedy(folder)}"
        )
    maps = []
    inner = 0  # the length of the part that the offsets of a part refer to
    for part in _PARTS:
        file = folder / f"{split}.{part}"
        length = meta[split].get(part, -2)
        is_offsets = part != "tokens"
        dtype = OFFSET if is_offsets else token_dtype(meta["vocab_size"])
        size = (length + is_offsets) * dtype.itemsize
        if not file.exists() or file.stat().st_size != size:
            raise DamagedFileError(file, f"does not have {size} bytes", _remedy(folder))
        content = np.memmap(file, dtype, mode="r")
        if is_offsets and (content[0], content[-1]) != (0, inner):
            raise DamagedFileError(file, f"does not go from 0 to {inner}", _remedy(folder))
        maps.append(content)
        inner = length
    return Shards(split, *maps, meta=meta)


class _Meta(BaseModel, extra="allow"):
    """The fields of meta.json that are read; the file has more."""

    model_fingerprint: str = ""
    vocab_size: NonNegativeInt
    train: dict[str, int | float]
    dev: dict[str, int | float]


def read_meta(folder: Path) -> dict[str, Any]:
    """The content of meta.json of prepared shards: counts, fingerprints, settings; or
    DamagedFileError.
    """
    return files.read_json(folder / "meta.json", _Meta, _remedy(folder)).model_dump()


def _remedy(folder: Path) -> str:
    return f"remove {folder}, and the same command builds it again"


class ShardWriter:
    """Appends tokens to the files of one split; counts has the numbers written, by part."""

    def __init__(self, folder: Path, split: Split) -> None:
        self.counts: dict[str, Any] = dict.fromkeys(_PARTS, 0)
        self._files = {part: folder / f"{split}.{part}" for part in _PARTS}
        for part, file in self._files.items():
            file.write_bytes(b"" if part == "tokens" else np.zeros(1, OFFSET).tobytes())

    def append(self, tokens: np.ndarray, *lengths: np.ndarray) -> None:
        """Adds documents; their lengths become the offsets of their ends, after the 0 that the file
        begins with.

        Args:
            tokens: Token ids, in the dtype of the shards [tokens].
            lengths: Of sentences in tokens [sentences], of documents in sentences [documents], and
                of source documents in documents [source documents].
        """
        # The lengths of a part end where the part before it ends.
        inner = zip(_PARTS, lengths, strict=False)
        offsets = [self.counts[part] + np.cumsum(length) for part, length in inner]
        for part, content in zip(_PARTS, (tokens, *offsets), strict=True):
            self.counts[part] += len(content)
            with open(self._files[part], "ab") as file:
                file.write(content.tobytes())


def token_dtype(vocab_size: int) -> np.dtype:
    """The integer type for the ids of a vocabulary: uint16 if they fit, else uint32."""
    return np.dtype("<u2" if vocab_size <= 2**16 else "<u4")
