"""Each test begins without own code, and what it includes is forgotten at its end."""

from importlib import import_module

import pytest

from albert_lab import own_code, paths


@pytest.fixture(autouse=True)
def nothing_included(monkeypatch):
    monkeypatch.setattr(own_code, "_included", {})
    places = [place.rpartition(".") for place in own_code.DICTS.values()]
    dicts = [getattr(import_module(f"albert_lab.{module}"), name) for module, _, name in places]
    before = [dict(things) for things in dicts]
    yield
    paths.use_conf([])
    for things, kept in zip(dicts, before, strict=True):
        things.clear()
        things.update(kept)


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
