"""Own code: a file that a user names is executed, and puts its functions and classes into the dicts
of this package.
"""

import re
import sys
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from types import ModuleType

from albert_lab.errors import FIXABLE, ConfigError
from albert_lab.files import digest_of, read_bytes

# The dicts that a file can add to, by the setting that chooses from them; those of whole tasks and
# studies come last.
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
# Of these, what no training depends on: what scores finished runs, and what decides claims.
_MEASURES = DICTS["columns"]
_CHECKS = DICTS["check"]
_AFTER_TRAINING = frozenset((_MEASURES, _CHECKS))
# what this process executed, by the names of the files
_included: dict[str, tuple[Path, bytes]] = {}


def include(path: Path) -> None:
    """Execute a file, but not twice; ConfigError if it cannot be read or fails, or another file of
    its name was.
    """
    path = path.absolute()
    content = read_bytes(path)
    earlier, executed = _included.get(path.name, (path, None))
    if executed == content:
        return
    if executed is not None:
        raise ConfigError(
            f"--include {path}: another file of this name is included ({earlier}); rename one"
        )
    module = ModuleType(f"own_code_{digest_of(content)}")
    module.__file__ = str(path)
    sys.modules[module.__name__] = module
    try:
        exec(compile(content, path, "exec"), module.__dict__)
    except BaseException as error:
        raise ConfigError(f"{path}: {error!r}; ALBERT_LAB_TRACEBACK=1 shows the place") from error
    _included[path.name] = path, content


def included() -> dict[str, str]:
    """The digest of each file that this process executed, by its name."""
    return {name: digest_of(content) for name, (_, content) in sorted(_included.items())}


def of_training() -> dict[str, str]:
    """The digests of the files that a training may depend on, by name: of all but those that use
    the dicts of measures and of checks alone.
    """
    return {
        name: digest
        for name, digest in included().items()
        if not _dicts_named_in(name) or not _dicts_named_in(name) <= _AFTER_TRAINING
    }


def of_measures() -> dict[str, str]:
    """The digests of the included files of own code that add measures, and at most checks besides,
    by file name: finished runs are scored with them.
    """
    return {
        name: digest
        for name, digest in included().items()
        if _MEASURES in _dicts_named_in(name) and _dicts_named_in(name) <= _AFTER_TRAINING
    }


def _dicts_named_in(file: str) -> set[str]:
    """The dicts that an included file names, such as MEASURES: it cannot add to others."""
    words = {*re.findall(rb"\w+", _included[file][1])}
    return {place for place in DICTS.values() if place.rpartition(".")[2].encode() in words}


def names(key: str) -> list[str]:
    """The names that a setting can have, if own code is included; its module is loaded, and with it
    maybe torch.
    """
    module, _, name = DICTS[key].rpartition(".")
    return list(getattr(import_module(f"albert_lab.{module}"), name)) if _included else []


def missing_option(key: str, name: str, file: str) -> str:
    """That a name which own code adds to a dict also needs a file of options; empty if own code
    adds no such name, or the key has no dict.
    """
    if key not in DICTS or name not in names(key):
        return ""
    return f"; own code has {name}: write its settings to FOLDER/{file}, and give --conf FOLDER"


def check(digests: Mapping[str, str], what: str) -> None:
    """Raises ConfigError if a file with which something was made is not included, or has other
    content.
    """
    for name, digest in digests.items():
        if included().get(name) != digest:
            raise ConfigError(
                f"{what} was made with own code: add --include FILE, with {name} as it was "
                f"({digest})"
            )


def included_files() -> list[str]:
    """The paths of the files that this process executed."""
    return [str(path) for path, _ in _included.values()]


def suspected(error: BaseException) -> str | None:
    """An error in one line that own code may have made, itself or by what it put into a dict; None
    for any other.
    """
    # Others than these are of the machine: memory, files, lost processes.
    of_code = type(error) in (RuntimeError, NotImplementedError, RecursionError)
    of_machine = isinstance(error, RuntimeError | OSError) and not of_code
    is_known = isinstance(error, FIXABLE) or not isinstance(error, Exception)
    if not _included or is_known or of_machine:
        return None
    place = "ALBERT_LAB_TRACEBACK=1 or the run's folder has the place"
    return (
        f"own code ({', '.join(_included)}) may be wrong: {' '.join(repr(error).split())}; {place}"
    )
