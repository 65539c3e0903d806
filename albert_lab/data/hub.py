"""Data sets of the Hugging Face Hub, or in a local folder in the Hub's format."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from albert_lab import paths
from albert_lab.config.data import CorpusConfig, HubDataset
from albert_lab.errors import ConfigError, MissingDataError


def datasets_of(corpus: CorpusConfig) -> tuple[HubDataset, ...]:
    """The data sets of a corpus, at least one."""
    if not corpus.datasets:
        raise ConfigError(
            f"{corpus.section}.datasets must name at least one data set if {corpus.section}.source is hub"
        )
    return corpus.datasets


def local_folder(dataset: HubDataset) -> Path | None:
    """The folder of a data set whose path is a folder on this machine; None otherwise."""
    folder = paths.expanded(dataset.path)
    return folder.absolute() if folder.is_dir() else None


def rows(dataset: HubDataset, revision: Callable[[HubDataset], str]) -> Iterator[Any]:
    """The rows of a data set, streamed.

    Args:
        revision: returns the revision to read, for a data set on the Hub.

    Raises:
        ConfigError, MissingDataError: see stream().
    """
    folder = local_folder(dataset)
    where, version = (str(folder), None) if folder else (dataset.path, revision(dataset))
    return stream(dataset.path, where, name=dataset.name, split=dataset.split, revision=version)


def stream(what: str, path: str, **settings: Any) -> Iterator[Any]:
    """The rows that datasets.load_dataset(path, ...) streams; what names them in errors.

    Raises:
        ConfigError: there is no such subset or split, or the file is damaged.
        MissingDataError: the package `datasets` is not installed, or the data set cannot be reached.
    """
    try:
        import datasets
        import datasets.config
    except ImportError as error:
        raise _not_installed(what) from error
    # Otherwise `datasets` imports torch if it is installed, and makes a stream a data set of torch.
    datasets.config.TORCH_AVAILABLE = False
    try:
        yield from datasets.load_dataset(path, streaming=True, **settings)
    except OSError as error:
        raise _unreachable(what, error) from error
    except ValueError as error:
        part = ", ".join(f"{key}={settings[key]}" for key in ("name", "split") if settings.get(key))
        raise ConfigError(f"{what} ({part}): {error}") from error


def newest_revision(dataset: HubDataset) -> str:
    """The newest revision of a data set on the Hub.

    Raises:
        MissingDataError: the package `huggingface_hub` is not installed, or the Hub cannot be reached.
    """
    try:
        from huggingface_hub import HfApi
    except ImportError as error:
        raise _not_installed(dataset.path) from error
    try:
        return HfApi().dataset_info(dataset.path).sha or dataset.path
    except Exception as error:  # the type of the error differs between versions of the transport
        raise _unreachable(dataset.path, error) from error


def _not_installed(what: str) -> MissingDataError:
    return MissingDataError(f"{what} needs the package datasets: pip install 'albert-lab[hub]'")


def _unreachable(what: str, error: Exception) -> MissingDataError:
    return MissingDataError(f"the data set {what} cannot be reached: {error}")
