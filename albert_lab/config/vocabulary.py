"""The vocabulary size of an existing tokenizer file."""

from functools import cache
from pathlib import Path


def vocabulary_size(file: Path) -> int | None:
    """Number of tokens of a SentencePiece model or tokenizer.json; None if unreadable (its first use reports why)."""
    try:
        state = file.stat()
    except (OSError, ValueError):
        return None
    return _size(file, state.st_size, state.st_mtime_ns)


@cache  # many configurations use one file; it is read again if it has changed
def _size(file: Path, _bytes: int, _changed: int) -> int | None:
    try:
        if file.suffix == ".json":
            import tokenizers

            return 1 + max(tokenizers.Tokenizer.from_file(str(file)).get_vocab().values())  # ids may have gaps
        from sentencepiece import SentencePieceProcessor

        processor = SentencePieceProcessor()
        processor.LoadFromSerializedProto(file.read_bytes())
        return processor.GetPieceSize()
    except Exception:  # an error of either library, or one is not installed
        return None
