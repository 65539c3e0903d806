"""Upload of an exported folder to the Hugging Face Hub."""

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

from albert_lab.errors import ConfigError, MissingDataError


def check(repo: str) -> None:
    """Check, before anything is written, that a folder could be pushed: the package, the name, and who is logged in.

    Raises:
        MissingDataError: the package `huggingface_hub` is not installed.
        ConfigError: the name cannot be that of a repository, or the Hub refuses, in its own words.
    """
    with _of_the_hub(repo) as hub:
        import_module("huggingface_hub.utils").validate_repo_id(repo)
        hub.HfApi().whoami()


def push(folder: Path, repo: str, *, private: bool) -> str:
    """Upload a folder as one commit to a model repository, which is created if it does not exist; returns its address.

    Raises: see check().
    """
    with _of_the_hub(repo) as hub:
        api = hub.HfApi()
        address = api.create_repo(repo, private=private, exist_ok=True)
        message = "Upload a model by albert-lab"
        api.upload_folder(repo_id=address.repo_id, folder_path=folder, commit_message=message)
        return str(address)


@contextmanager
def _of_the_hub(repo: str) -> Iterator[Any]:
    """The package, with its errors in one line."""
    try:
        hub: Any = import_module("huggingface_hub")
        # Its base is every error of a connection; which library raises it depends on the version.
        answer: Any = import_module("huggingface_hub.errors").HfHubHTTPError
        problems = (OSError, ValueError, RuntimeError, answer.__mro__[1])
    except ImportError as error:
        raise MissingDataError("--push needs a package: pip install 'albert-lab[hub]'") from error
    try:
        yield hub
    except problems as error:
        raise ConfigError(f"--push {repo}: {' '.join(str(error.__cause__ or error).split())}") from error
