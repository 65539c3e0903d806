"""The size of the vocabulary that an existing tokenizer file has."""

from functools import cache
from pathlib import Path


def vocabulary_size(file: Path) -> int | None:
    """Tokens of a SentencePiece model or a tokenizer.json; None where it cannot be read, as its first use will say."""
    try:
        state = file.stat()
    except (OSError, ValueError):
        return None
    return _size(file, state.st_size, state.st_mtime_ns)


@cache  # many configurations name one file; read again where it has changed
def _size(file: Path, _bytes: int, _changed: int) -> int | None:
    try:
        if file.suffix == ".json":
            import tokenizers

            return tokenizers.Tokenizer.from_file(str(file)).get_vocab_size()
        from sentencepiece import SentencePieceProcessor

        processor = SentencePieceProcessor()
        processor.LoadFromSerializedProto(file.read_bytes())
        return processor.GetPieceSize()
    except Exception:  # of either library, or for want of one
        return None
