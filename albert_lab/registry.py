"""Own code: the files that a user includes, and what each registers by name next to the things of this package."""

import hashlib
import linecache
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import FrameType, ModuleType, TracebackType
from typing import Any, Literal, ParamSpec, TypeVar

from albert_lab.errors import FIXABLE, ConfigError, LostProcessError

T = TypeVar("T")
P = ParamSpec("P")

# Each kind of thing that a file can register.
Kind = Literal[
    "activation",
    "attention_block",
    "ffn_block",
    "position_encoding",
    "norm_placement",
    "optimizer",
    "pair_kind",
    "masking",
    "measure",
    "task_kind",
    "check",
]
_MODULE = "albert_lab_include_"


@dataclass(frozen=True)
class Included:
    """A file of own code: its name without folders, and its text."""

    file: str
    text: str

    @property
    def digest(self) -> str:
        """Short hash of the text (12 hex digits)."""
        return hashlib.blake2b(self.text.encode(), digest_size=6).hexdigest()


@dataclass(frozen=True)
class _Own:
    thing: Any
    source: Included


_included: dict[str, tuple[Included, Path | None]] = {}  # by digest; the path as the user wrote it
_own: dict[Kind, dict[str, _Own]] = {}
_loading: list[Included] = []
_caches: list[Callable[[], None]] = []


class Registry(Mapping[str, T]):
    """The things of one kind by name: those of this package, then those of included files."""

    def __init__(self, kind: Kind, built_in: Mapping[str, T]) -> None:
        self.kind: Kind = kind
        self.built_in = built_in

    def __getitem__(self, name: str) -> T:
        """The thing of that name.

        Raises:
            ConfigError: there is none.
        """
        if name in self.built_in:
            return self.built_in[name]
        check_known(self.kind, name, self.built_in)
        return own(self.kind)[name]

    def __contains__(self, name: object) -> bool:
        return name in self.built_in or name in own(self.kind)

    def __iter__(self) -> Iterator[str]:
        return iter([*self.built_in, *own(self.kind)])

    def __len__(self) -> int:
        return len(self.built_in) + len(own(self.kind))

    def register(self, name: str, thing: T) -> None:
        """Register a thing of the file that is being included.

        Raises:
            ConfigError: the name is taken.
        """
        if name in self.built_in:
            raise ConfigError(f"{_words(self.kind)} {name} is part of albert_lab: choose another name")
        register(self.kind, name, thing)

    def decorator(self, name: str) -> Callable[[T], T]:
        """A decorator that registers a thing under a name."""

        def decorate(thing: T) -> T:
            self.register(name, thing)
            return thing

        return decorate


def register(kind: Kind, name: str, thing: Any) -> None:
    """Register a thing of a kind without a registry of its own; see Registry.register().

    Raises:
        ConfigError: the name is taken; or no file is being included, so that no run could record the code.
    """
    if not _loading:
        raise ConfigError(
            f"{_words(kind)} {name}: own code is registered by a file that a command includes (--include FILE.py), or"
            " by albert_lab.extend.include(FILE)"
        )
    if not isinstance(name, str) or not re.fullmatch(r"[\w.-]+", name) or not _is_text(name):
        raise ConfigError(
            f"{_words(kind)} {name!r}: a name has letters, digits, and ._-, and is no number or truth value (it is"
            " written in settings)"
        )
    if taken := _own.get(kind, {}).get(name):
        raise ConfigError(f"{_words(kind)} {name} is registered twice: by {taken.source.file} too")
    _own.setdefault(kind, {})[name] = _Own(thing, _loading[-1])


def _is_text(name: str) -> bool:
    """Whether a setting with this value is text, and no number or truth value."""
    from omegaconf import OmegaConf

    return isinstance(OmegaConf.create(f"name: {name}").name, str)


def own(kind: Kind) -> dict[str, Any]:
    """The things of one kind that included files registered, by name."""
    return {name: registered.thing for name, registered in _own.get(kind, {}).items()}


def source_of(kind: Kind, name: str) -> Included | None:
    """The included file that registered a thing; None for a thing of this package."""
    registered = _own.get(kind, {}).get(name)
    return registered.source if registered else None


def digests(kind: Kind, names: Iterable[str]) -> list[str]:
    return [source.digest for name in names if (source := source_of(kind, name))]


def measuring() -> list[Included]:
    """The included files that register a held-out measure, which every run is scored by."""
    return list(dict.fromkeys(registered.source for registered in _own.get("measure", {}).values()))


def check_known(kind: Kind, name: str, built_in: Iterable[str], key: str | None = None) -> None:
    """Check that a name is built in, or registered by an included file; key is the setting that has it.

    Raises:
        ConfigError: it is neither; lists the allowed names.
    """
    known = [*built_in, *own(kind)]
    if name not in known:
        place = f"{key or kind}={name}"
        raise ConfigError(f"{place} is unknown (allowed: {', '.join(known)}, and what an --include FILE.py registers)")


def include(file: Path) -> Included:
    """Execute a file, which registers what it has. A text that is included already is not executed again.

    Raises:
        ConfigError: the file cannot be read, fails or registers nothing; names the file and the line.
    """
    try:
        if file.exists() and not file.is_file():  # a pipe or a device may have no end
            raise ValueError("it is no ordinary file")
        text = file.read_bytes().decode()
    except FileNotFoundError as error:
        raise ConfigError(f"--include {file}: the file does not exist") from error
    except (OSError, ValueError) as error:
        what = "is a folder" if file.is_dir() else f"cannot be read as UTF-8 text: {error}"
        raise ConfigError(f"--include {file}: {what}; name a Python file") from error
    included = Included(file.name, text)
    _load(included, file)
    return included


def include_recorded(files: Iterable[Included]) -> None:
    """Execute the texts that a run's configuration records, as the process that trains the run does.

    Raises:
        ConfigError: see include().
    """
    for file in files:
        _load(file, None)


def are_included(files: Iterable[Included]) -> bool:
    return all(file.digest in _included for file in files)


def file_names() -> list[str]:
    return [included.file for included, _ in _included.values()]


def have_files(names: Iterable[str]) -> bool:
    """Whether files of these names are included, with any text."""
    return set(names) <= set(file_names())


def check_included(files: Iterable[Included], what: str) -> None:
    """Check that exactly these texts are included, before work with a model that was trained with them.

    Raises:
        ConfigError: one is not; names the file.
    """
    for file in files:
        if not are_included([file]):
            same = [included for included, _ in _included.values() if included.file == file.file]
            other = f"{file.file} is included, but with another text" if same else f"add --include {file.file}"
            raise ConfigError(
                f"{what} was trained with own code: {other}; the text it was trained with is in the folder of the run,"
                f" include/{file.file}"
            )


def _load(included: Included, path: Path | None) -> None:
    if included.digest in _included:
        return
    name, shown = _MODULE + included.digest, str(path or included.file)
    module = ModuleType(name)
    module.__file__ = shown
    sys.modules[name] = module  # dataclasses look their module up
    linecache.cache[shown] = (len(included.text), None, included.text.splitlines(keepends=True), shown)
    _loading.append(included)
    before = sum(map(len, _own.values()))
    try:
        exec(compile(included.text, shown, "exec"), module.__dict__)
        if sum(map(len, _own.values())) == before:
            raise ConfigError("registers nothing: docs/own-code.md lists the decorators")
    except (Exception, SystemExit) as error:
        for things in _own.values():
            for key in [key for key, thing in things.items() if thing.source == included]:
                del things[key]
        raise ConfigError(_describe(error, shown)) from error
    finally:
        _loading.pop()
    _included[included.digest] = (included, path)
    renew()


def _describe(error: BaseException, shown: str) -> str:
    """An error of an included file in one line, with the line where it was raised."""
    if isinstance(error, SyntaxError) and error.filename == shown:
        return f"{shown}, line {error.lineno}: {error.msg}"
    lines = [frame.f_lineno if number is None else number for frame, number in _frames(error.__traceback__, shown)]
    place = f"{shown}, line {lines[-1]}" if lines else shown
    return f"{place}: {_reason(error)}"


def _frames(traceback: TracebackType | None, shown: str) -> Iterator[tuple[FrameType, int | None]]:
    while traceback:
        if traceback.tb_frame.f_code.co_filename == shown:
            yield traceback.tb_frame, traceback.tb_lineno
        traceback = traceback.tb_next


def _reason(error: BaseException) -> str:
    text = " ".join(str(error).split())
    return text if isinstance(error, FIXABLE) and text else f"{type(error).__name__}: {text}".rstrip(": ")


def error_of_own_code(error: BaseException) -> str | None:
    """An error in one line, with file and line, if it was raised in or below an included file; else None.

    Not if the error says what happened by itself: one that a user can fix, too little memory, or a lost process.
    """
    if isinstance(error, (*FIXABLE, MemoryError, LostProcessError)) or type(error).__name__ == "OutOfMemoryError":
        return None
    for included, path in _included.values():
        shown = str(path or included.file)
        if any(True for _ in _frames(error.__traceback__, shown)):
            return _describe(error, shown)
    return None


def options() -> list[str]:
    """The options that include the same files in another process, for files that no run records."""
    in_runs = {
        registered.source.digest
        for kind, things in _own.items()
        if kind in _FOR_LATER
        for registered in things.values()
    }
    paths = [path for digest, (_, path) in _included.items() if digest in in_runs and path]
    return [word for path in paths for word in ("--include", str(path.absolute()))]


_FOR_LATER: tuple[Kind, ...] = ("task_kind",)  # needed after the pre-training, by its process


def until_included(function: Callable[P, T]) -> Callable[P, T]:
    """A cache of a function's results that is emptied when a file is included."""
    cached = cache(function)
    _caches.append(cached.cache_clear)
    return cached  # pyright: ignore[reportReturnType]


def renew() -> None:
    for clear in _caches:
        clear()


@contextmanager
def separate() -> Iterator[None]:
    """A context that begins without included files, and whose own are forgotten at its end."""
    included, own_things = dict(_included), _own.copy()
    _set_to({}, {})
    try:
        yield
    finally:
        _set_to(included, own_things)


def _set_to(included: Mapping[str, Any], own_things: Mapping[Kind, Any]) -> None:
    if _included == included and _own == own_things:
        return
    _included.clear()
    _own.clear()
    _included.update(included)
    _own.update(own_things)
    renew()


def _words(kind: Kind) -> str:
    return kind.replace("_", " ")
