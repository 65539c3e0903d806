import shutil
import subprocess
from pathlib import Path

import pytest

from albert_lab.runs import commit

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")


def git(folder: Path, *words: str) -> str:
    who = ["-c", "user.name=toy", "-c", "user.email=toy@example.org", "-c", "commit.gpgsign=false"]
    done = subprocess.run(["git", "-C", folder, *who, *words], capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.fixture
def package(tmp_path):
    """A package with a folder of settings beside it, both committed."""
    for name in ("package/__init__.py", "conf/config.yaml", "notes.md"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("\n")
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-qm", "toy")
    return tmp_path / "package"


def test_a_package_in_a_checkout_has_its_commit_from_any_folder(package, tmp_path, monkeypatch):
    monkeypatch.chdir("/")
    assert commit.of(package) == git(tmp_path, "rev-parse", "HEAD")


@pytest.mark.parametrize(
    ("name", "is_marked"), [("package/new.py", True), ("conf/config.yaml", True), ("notes.md", False)]
)
def test_a_commit_is_marked_if_code_or_settings_changed(package, tmp_path, name, is_marked):
    (tmp_path / name).write_text("changed")
    result = commit.of(package, tmp_path / "conf")
    assert result is not None
    assert result.endswith(commit.DIRTY) == is_marked


def test_a_package_that_is_only_installed_below_a_checkout_has_no_commit(package, tmp_path):
    installed = tmp_path / "venv" / "site-packages" / "other"
    installed.mkdir(parents=True)
    (installed / "__init__.py").touch()
    assert commit.of(installed) is None


def test_without_git_there_is_no_commit(package, monkeypatch):
    monkeypatch.setenv("PATH", "")
    assert commit.of(package) is None
