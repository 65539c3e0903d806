"""Hydra with conf/, and the functions that interpolations in it call."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from hydra import initialize_config_dir
from hydra.core.config_search_path import ConfigSearchPath
from hydra.core.global_hydra import GlobalHydra
from hydra.core.plugins import Plugins
from hydra.plugins.search_path_plugin import SearchPathPlugin
from omegaconf import OmegaConf

from albert_lab import paths
from albert_lab.errors import ConfigError

# Parts of the keys that these functions read, beside their arguments.
REFERRED = frozenset({"hidden_size", "scale", "budget"})


def _register_resolvers() -> None:
    def hidden_over(divisor: int, *, _root_: Any) -> int:
        hidden_size = _root_.model.hidden_size
        if hidden_size % divisor:
            raise ConfigError(f"model.hidden_size={hidden_size} is not divisible by {divisor}")
        return hidden_size // divisor

    def scale_budgets(papers: int, *, _root_: Any) -> float:
        return _root_.scale.roles.budgets[str(papers)] * _root_.scale.budget[_root_.budget.unit]

    OmegaConf.register_new_resolver("hidden_over", hidden_over, replace=True)
    OmegaConf.register_new_resolver("scale_budgets", scale_budgets, replace=True)
    OmegaConf.register_new_resolver("multiply", lambda a, b: a * b, replace=True)


@contextmanager
def hydra() -> Iterator[None]:
    """A context in which Hydra composes conf/ and the user's folders; contexts can be nested."""
    if GlobalHydra.instance().is_initialized():  # nested initialisation is an error in Hydra
        yield
        return
    _register_resolvers()
    Plugins.instance().register(_OwnFolders)
    with initialize_config_dir(str(paths.CONF), version_base="1.3"):
        yield


class _OwnFolders(SearchPathPlugin):
    """The user's folders of options, which join every group."""

    def manipulate_search_path(self, search_path: ConfigSearchPath) -> None:
        for folder in paths.own_conf():
            search_path.append("own", f"file://{folder}")
