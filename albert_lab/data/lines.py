"""Lines of text files, plain or compressed, decompressed and decoded as they are read."""

import bz2
import gzip
import io
import lzma
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import nullcontext
from os.path import splitext
from pathlib import Path
from typing import Any

import zstandard

from albert_lab.errors import ConfigError, MissingDataError

COMPRESSION: dict[str, Callable[..., Any]] = {
    ".gz": gzip.open,
    ".bz2": bz2.open,
    ".xz": lzma.open,
    ".zst": nullcontext,  # see _decompress_zstd
}
_CHUNK_BYTES = 1 << 20
_NEL = "\x85".encode()  # the end of a line on mainframes
_REMEDY = (
    f"name a compressed file *{', *'.join(COMPRESSION)} and a table *.parquet, take the text out of a document, or"
    " convert other encodings by iconv -f WINDOWS-1252 (or UTF-16) -t UTF-8"
)


def suffixes(file: Path) -> tuple[str, str]:
    """The suffix of the format, and that of the compression (empty if none)."""
    stem, last = splitext(file.name.lower())
    return (splitext(stem)[1], last) if last in COMPRESSION else (last, "")


def lines_of(file: Path) -> Iterator[tuple[int, str]]:
    """Number and text of each line, decompressed and decoded as it is read.

    Raises:
        ConfigError: binary, badly encoded or damaged, with file and line. MissingDataError: the file cannot be opened.
    """
    number = 0
    try:
        for number, line in enumerate(_split_lines(_chunks(file)), 1):
            if b"\0" in line:
                raise ConfigError(f"{file}:{number}: binary (a NUL byte), not UTF-8 text: {_REMEDY}")
            yield number, line.decode("utf-8-sig" if number == 1 else "utf-8").rstrip("\r")
    except UnicodeDecodeError as error:
        bad = f"byte 0x{error.object[error.start]:02x} at {error.start} of the line"
        raise ConfigError(f"{file}:{number}: not UTF-8 ({bad}): {_REMEDY}") from error
    except (EOFError, zlib.error, lzma.LZMAError, zstandard.ZstdError, OSError) as error:
        if isinstance(error, OSError) and error.errno:
            raise MissingDataError(f"{file} cannot be read: {error.strerror} (after line {number})") from error
        raise ConfigError(f"{file}: damaged, or not {file.suffix}: {error} (after line {number})") from error


def _split_lines(chunks: Iterable[bytes]) -> Iterator[bytes]:
    other: bytes | None = None  # the end of lines in a file without newlines
    rest: list[bytes] = []  # joined once a line: adding each chunk to it would copy it as often as it has chunks
    for chunk in chunks:
        if other is None:
            other = next((end for end in (b"\n", b"\r", _NEL) if end in chunk), b"\n")
        first, *lines = chunk.replace(other, b"\n").split(b"\n")
        rest.append(first)
        for line in lines:
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
        with COMPRESSION.get(compression, nullcontext)(packed) as stream:
            while chunk := stream.read(_CHUNK_BYTES):
                yield chunk


def open_file(file: Path) -> io.BufferedReader:
    """Opens a file for reading bytes.

    Raises:
        MissingDataError: the file cannot be opened, or is none, but a pipe or a device, which may have no end.
    """
    try:
        if not file.is_file() and file.exists():
            raise MissingDataError(f"{file} is no ordinary file")
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
