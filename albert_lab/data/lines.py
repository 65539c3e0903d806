"""Lines of text files, plain or compressed, decompressed and decoded as they are read."""

import codecs
import gzip
import io
import lzma
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import zstandard

from albert_lab.errors import ConfigError, MissingDataError

# Suffix of a compressed file: bytes of text per compressed byte, for English prose; only estimates use this.
COMPRESSION = {".gz": 2.7, ".xz": 3.8, ".zst": 3.0}
_CHUNK_BYTES = 1 << 20
_UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


def suffixes(file: Path) -> tuple[str, str]:
    """The suffix of the format, and that of the compression (empty if none)."""
    compressed = file.suffix.lower() if file.suffix.lower() in COMPRESSION else ""
    return (Path(file.stem) if compressed else file).suffix.lower(), compressed


def lines_of(file: Path) -> Iterator[tuple[int, str]]:
    """Number and text of each line, decompressed and decoded as it is read.

    Raises:
        ConfigError: binary, badly encoded or damaged, with file and line. MissingDataError: the file cannot be opened.
    """
    number = 0
    try:
        for number, line in enumerate(_split_lines(_chunks(file)), 1):
            if b"\0" in line:
                hint = "; it looks like UTF-16: iconv -f UTF-16 -t UTF-8" if number == 1 and line[:2] in _UTF_16 else ""
                raise ConfigError(f"{file}:{number}: binary (a NUL byte), not UTF-8 text{hint}")
            yield number, line.decode("utf-8-sig" if number == 1 else "utf-8").rstrip("\r")
    except OSError as error:
        if isinstance(error, gzip.BadGzipFile):
            raise ConfigError(f"{file}: damaged, or not {file.suffix}: {error} (after line {number})") from error
        raise MissingDataError(f"{file} cannot be read: {error.strerror} (after line {number})") from error
    except UnicodeDecodeError as error:
        bad = error.object[error.start]
        raise ConfigError(
            f"{file}:{number}: not UTF-8 (byte 0x{bad:02x} at {error.start} of the line);"
            " if it is Western text: iconv -f WINDOWS-1252 -t UTF-8"
        ) from error
    except (EOFError, zlib.error, lzma.LZMAError, zstandard.ZstdError) as error:
        raise ConfigError(f"{file}: damaged, or not {file.suffix}: {error} (after line {number})") from error


def _split_lines(chunks: Iterable[bytes]) -> Iterator[bytes]:
    rest: list[
        bytes
    ] = []  # joined once a line: adding each chunk to it would copy a long line as often as it has chunks
    for chunk in chunks:
        first, *others = chunk.split(b"\n")
        rest.append(first)
        for line in others:
            yield b"".join(rest)
            rest = [line]
    if any(rest):
        yield b"".join(rest)


def _chunks(file: Path) -> Iterator[bytes]:
    compression = suffixes(file)[1]
    with open_file(file) as packed:
        if compression == ".zst":
            yield from _decompress_zstd(packed)
            return
        opener: Callable[..., Any] = {".gz": gzip.open, ".xz": lzma.open}.get(compression, nullcontext)
        with opener(packed) as stream:
            while chunk := stream.read(_CHUNK_BYTES):
                yield chunk


def open_file(file: Path) -> io.BufferedReader:
    """Opens a file for reading bytes.

    Raises:
        MissingDataError: the file cannot be opened.
    """
    try:
        return open(file, "rb")
    except OSError as error:
        raise MissingDataError(f"{file} cannot be read: {error.strerror}") from error


def _decompress_zstd(stream: io.BufferedReader) -> Iterator[bytes]:
    # The package's own stream readers accept a truncated file as complete.
    decompressor = zstandard.ZstdDecompressor().decompressobj()
    whole = False
    while chunk := stream.read(_CHUNK_BYTES):
        while chunk:
            yield decompressor.decompress(chunk)
            chunk, whole = decompressor.unused_data, decompressor.eof
            if whole:
                decompressor = zstandard.ZstdDecompressor().decompressobj()
    if not whole:
        raise EOFError("it ends within a frame")
