"""The vocabulary size of an existing tokenizer file."""

from functools import cache
from pathlib import Path

from albert_lab import paths
from albert_lab.errors import ConfigError


def vocabulary_size(name: str) -> int | None:
    """Number of tokens of tokenizer.model_file; None if it cannot be read or needs a package (its first use says so).

    Raises:
        ConfigError: the file is neither a SentencePiece model nor a tokenizer.json.
    """
    file = paths.expanded(name)
    try:
        state = file.stat()
        return _size(file, state.st_size, state.st_mtime_ns)
    except (ImportError, OSError):
        return None
    except (RuntimeError, ValueError) as error:  # of SentencePiece, and of tokenizers
        raise ConfigError(
            f"tokenizer.model_file={name} is neither a SentencePiece model nor a tokenizer.json"
        ) from error


@cache  # many configurations use one file; it is read again if it has changed
def _size(file: Path, _bytes: int, _changed: int) -> int:
    model = file.read_bytes()
    if file.suffix == ".json":
        import tokenizers

        return 1 + max(tokenizers.Tokenizer.from_buffer(model).get_vocab().values())  # ids may have gaps
    from sentencepiece import SentencePieceProcessor

    processor = SentencePieceProcessor()
    processor.LoadFromSerializedProto(model)
    return processor.GetPieceSize()
