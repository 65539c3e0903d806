"""Paths of the configuration and experiment files, and of the output of commands."""

import os
from collections.abc import Callable, Iterable
from functools import lru_cache
from glob import escape
from pathlib import Path
from typing import TypeVar, cast

from albert_lab.errors import ConfigError
from albert_lab.files import read_yaml

PACKAGE = Path(__file__).resolve().parent
# in a wheel inside, in a checkout beside it
_SHIPPED = PACKAGE if (PACKAGE / "conf").is_dir() else PACKAGE.parent
CONF = _SHIPPED / "conf"
EXPERIMENTS = _SHIPPED / "experiments"
own_conf: list[Path] = []  # the user's folders
_cache_clears: list[Callable[[], None]] = []
F = TypeVar("F", bound=Callable[..., object])


def cache_until_use_conf(read: F) -> F:
    """Caches what a function reads of the configuration files, until use_conf() names folders
    anew.
    """
    cached = lru_cache(maxsize=None)(read)
    _cache_clears.append(cached.cache_clear)
    return cast(F, cached)


def use_conf(folders: Iterable[Path]) -> None:
    """Add the options in these folders, and in no others, to those of conf/; or ConfigError."""
    own_conf[:] = dict.fromkeys(folder.absolute() for folder in folders)
    for clear_cache in _cache_clears:
        clear_cache()
    groups = sorted(place.name for place in CONF.iterdir() if place.is_dir())
    for folder in own_conf:
        if not folder.is_dir():
            raise ConfigError(f"--conf {folder}: there is no such folder")
        for file in sorted(folder.rglob("*.yaml")):
            option = file.relative_to(folder)
            if str(option.parent) not in groups or (CONF / option).exists():
                raise ConfigError(
                    f"{file} is no new option: name it {folder}/GROUP/NAME.yaml (groups: "
                    f"{', '.join(groups)})"
                )
            read_yaml(file)  # Hydra's own errors do not name every damaged file


def conf_files(pattern: str) -> list[Path]:
    """The configuration files of a pattern, such as task/*.yaml: those of conf/, then those of the
    user's folders.
    """
    return [file for folder in (CONF, *own_conf) for file in sorted(folder.glob(pattern))]


def conf_file(name: str) -> Path:
    """A configuration file, such as task/sst2.yaml; that of conf/, which need not exist, if no
    folder has it.
    """
    return next(iter(conf_files(escape(name))), CONF / name)


def expanded(text: str) -> Path:
    """The path that a user wrote, with ~ replaced by a home folder; of an unknown user it stays."""
    return Path(os.path.expanduser(text))


def _output(variable: str, default: Path) -> Path:
    return expanded(os.environ.get(variable) or str(default)).absolute()


def home() -> Path:
    """Folder below which commands write: $ALBERT_LAB_HOME, else lab/ in the current folder."""
    return _output("ALBERT_LAB_HOME", Path("lab"))


def runs() -> Path:
    return home() / "runs"


def reports() -> Path:
    return home() / "reports"


def published() -> Path:
    """Folder of published reports: $ALBERT_LAB_PUBLISHED, else reports/ in the current folder."""
    return _output("ALBERT_LAB_PUBLISHED", Path("reports"))


def tasks_data() -> Path:
    """Folder of the downstream tasks' data (glue, squad, race): $ALBERT_LAB_TASKS, else data/ in
    home().
    """
    return _output("ALBERT_LAB_TASKS", home() / "data")


def cache() -> Path:
    """Folder of token shards and tokenizers: $ALBERT_LAB_CACHE, else cache/ in home()."""
    return _output("ALBERT_LAB_CACHE", home() / "cache")
