"""Each test begins without own code, and what it includes is forgotten at its end."""

from contextlib import ExitStack
from unittest import mock

import pytest

from albert_lab import own_code, paths


@pytest.fixture(autouse=True)
def nothing_included(monkeypatch):
    monkeypatch.setattr(own_code, "_included", {})
    with ExitStack() as stack:
        for place in own_code.DICTS.values():
            stack.enter_context(mock.patch.dict(f"albert_lab.{place}"))
        yield
    paths.use_conf([])


@pytest.fixture
def own(tmp_path):
    """Writes a file of own code and includes it."""

    def include(text, name="own.py"):
        file = tmp_path / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(text)
        own_code.include(file)
        return file

    return include
