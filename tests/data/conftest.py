"""A toy text with its tokenizer, and configurations of runs on it."""

import pytest
from toy_text import toy_documents

from albert_lab.config.compose import load
from albert_lab.data.vocabulary import train


@pytest.fixture(scope="session")
def model(tmp_path_factory):
    """A tokenizer of the toy text, trained once."""
    file = tmp_path_factory.mktemp("tokenizer") / "toy.model"
    settings = load(["scale=smoke", "tokenizer.vocab_size=50"])
    train(toy_documents(), settings.tokenizer, file)
    return file


@pytest.fixture
def run(tmp_path, monkeypatch):
    """A function that returns the configuration of a run on the toy text, with a separate cache."""
    monkeypatch.setenv("ALBERT_LAB_CACHE", str(tmp_path / "cache"))
    text = tmp_path / "text"
    text.mkdir()
    (text / "a.txt").write_text("\n\n".join(toy_documents()))
    base = ["scale=smoke", "corpus=files", f"corpus.path={text}", "corpus.dev_share=0.2"]
    return lambda *overrides: load([*base, "tokenizer.vocab_size=50", *overrides])
