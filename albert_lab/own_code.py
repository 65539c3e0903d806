"""Own code: a file that a user names is executed, and puts its functions and classes into the dicts of this package."""

import hashlib
import linecache
import sys
import traceback
from collections.abc import Iterable, Mapping
from importlib import import_module
from pathlib import Path
from types import ModuleType

from albert_lab.errors import FIXABLE, ConfigError
from albert_lab.files import read_bytes

# The dicts that a file can add to, by the setting that chooses from them; those of whole tasks and studies come last.
DICTS = {
    "model.hidden_act": "model.blocks.ACTIVATIONS",
    "attention_block": "model.blocks.ATTENTION_BLOCKS",
    "ffn_block": "model.blocks.FFN_BLOCKS",
    "position_encoding": "model.blocks.POSITION_ENCODINGS",
    "optimizer": "training.optimizer.OPTIMIZERS",
    "masking.method": "data.masking.METHODS",
    "inter_sentence.labels": "data.pairs.KINDS",
    "columns": "measures.catalog.MEASURES",
    "kind": "tasks.task.KINDS",
    "check": "studies.claims.CHECKS",
}
_paths: dict[str, Path] = {}  # of the files that this process executed, by their names
_digests: dict[str, str] = {}
_contents: dict[str, bytes] = {}


def digest_of(content: bytes) -> str:
    return hashlib.blake2b(content, digest_size=6).hexdigest()


def include(file: Path) -> None:
    """Execute a file; not again if it was, with the same content.

    Raises:
        ConfigError: it cannot be read or fails, with the line; or another file of its name was executed.
    """
    content = read_bytes(file)
    digest = digest_of(content)
    if _digests.setdefault(file.name, digest) != digest:
        raise ConfigError(f"--include {file}: another file of this name is included ({_paths[file.name]}); rename one")
    if file.name in _paths:
        return
    _paths[file.name], _contents[file.name] = file.absolute(), content
    module = ModuleType(f"own_code_{digest}")
    module.__file__ = str(file)
    sys.modules[module.__name__] = module
    linecache.cache.pop(str(file), None)
    try:
        exec(compile(content, str(file), "exec"), module.__dict__)
    except (Exception, SystemExit) as error:
        raise ConfigError(place_of(error) or f"{file}: {error}") from error


def include_copies(folder: Path, digests: Mapping[str, str]) -> None:
    """Execute the copies of files in a folder, whose names and digests are part of the name of a run.

    Raises:
        ConfigError: a copy has another digest; or see include().
    """
    for name, digest in digests.items():
        file = folder / name
        if not file.is_file() or digest_of(file.read_bytes()) != digest:
            raise ConfigError(f"{file} is not the file {name} that the run was made with; repeat the run's command")
        include(file)


def included() -> dict[str, str]:
    """The digest of each file that this process executed, by its name."""
    return dict(sorted(_digests.items()))


def content_of(name: str) -> bytes:
    """The content of a file that this process executed, which may have changed since."""
    return _contents[name]


def names(key: str) -> list[str]:
    """The names that a setting can have, if own code is included; its module is loaded, and with it maybe torch."""
    if not _digests:
        return []
    module, _, name = DICTS[key].rpartition(".")
    return list(getattr(import_module(f"albert_lab.{module}"), name))


def check(digests: Mapping[str, str], what: str) -> None:
    """Check that the files with which something was made are included.

    Raises:
        ConfigError: one is not, or with another content.
    """
    for name, digest in digests.items():
        if _digests.get(name) != digest:
            raise ConfigError(
                f"{what} was made with own code: add --include FILE for the copy in its folder, include/{name}"
            )


def options(known: Iterable[str] = ()) -> list[str]:
    """The options that include the same files in another process, without those that it knows by name."""
    others = [file for name, file in _paths.items() if name not in known]
    return [word for file in others for word in ("--include", str(file))]


def place_of(error: BaseException) -> str | None:
    """An error in one line with its place, if it was raised in or below own code; None for one that says it all."""
    if isinstance(error, SyntaxError) and Path(str(error.filename)).absolute() in _paths.values():
        return f"{error.filename}, line {error.lineno}: {error.msg}"
    frames = traceback.extract_tb(error.__traceback__)
    lines = [frame for frame in frames if Path(frame.filename).absolute() in _paths.values()]
    if not lines or (isinstance(error, FIXABLE) and Path(frames[-1].filename).absolute() not in _paths.values()):
        return None
    text = " ".join(str(error).split())
    return f"{lines[-1].filename}, line {lines[-1].lineno}: {type(error).__name__}: {text}".rstrip(": ")
