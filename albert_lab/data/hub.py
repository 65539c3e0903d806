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


def rows(dataset: HubDataset, revision: Callable[[HubDataset], str]) -> Iterator[tuple[str, Any]]:
    """Place (data set:row) and content of each row, streamed.

    Args:
        revision: returns the revision to read, for a data set on the Hub.

    Raises:
        ConfigError: the data set has no such subset or split.
        MissingDataError: the package `datasets` is not installed, or the data set cannot be reached.
    """
    try:
        import datasets
        import datasets.config
    except ImportError as error:
        raise _not_installed(dataset) from error
    # Otherwise `datasets` imports torch if it is installed, and makes a stream a data set of torch.
    datasets.config.TORCH_AVAILABLE = False
    folder = local_folder(dataset)
    path, version = (str(folder), None) if folder else (dataset.path, revision(dataset))
    try:
        for number, row in enumerate(
            datasets.load_dataset(path, dataset.name, split=dataset.split, streaming=True, revision=version)
        ):
            yield f"{dataset.path}:{number}", row
    except OSError as error:
        raise _unreachable(dataset, error) from error
    except ValueError as error:
        raise ConfigError(f"corpus.datasets: {dataset.path} ({dataset.name}, {dataset.split}): {error}") from error


def newest_revision(dataset: HubDataset) -> str:
    """The newest revision of a data set on the Hub.

    Raises:
        MissingDataError: the package `huggingface_hub` is not installed, or the Hub cannot be reached.
    """
    try:
        from huggingface_hub import HfApi
    except ImportError as error:
        raise _not_installed(dataset) from error
    try:
        return HfApi().dataset_info(dataset.path).sha or dataset.path
    except Exception as error:  # the type of the error differs between versions of the transport
        raise _unreachable(dataset, error) from error


def _not_installed(dataset: HubDataset) -> MissingDataError:
    return MissingDataError(f"{dataset.path} needs the package datasets: pip install 'albert-lab[hub]'")


def _unreachable(dataset: HubDataset, error: Exception) -> MissingDataError:
    return MissingDataError(f"the data set {dataset.path} cannot be reached: {error}")
