"""Whatever README.md and docs/ tell a reader to type or to click exists."""

import re
import shlex
from pathlib import Path

import pytest
import typer.main
from omegaconf import OmegaConf

from albert_lab import paths
from albert_lab.cli.app import app
from albert_lab.config.compose import axes, load
from albert_lab.studies import experiment
from albert_lab.studies.points import points

CHECKOUT = paths.PACKAGE.parent
PAGES = [CHECKOUT / "README.md", *sorted((CHECKOUT / "docs").glob("*.md"))]
EXPERIMENTS = [file.stem for file in experiment.files()]
# Their settings are those of a run or of a task's file, which a page has not.
GRAMMAR_ALONE = ["run", "continue", "finetune", "data fetch", "score", "ensemble", "plot layer-similarity"]


def blocks(page: Path) -> list[tuple[str, str]]:
    """Language and text of each fenced block."""
    return re.findall(r"^```(\w*)\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL)


def commands(page: Path) -> list[str]:
    """Every command line of the shell blocks, and every `albert-lab ...` between backquotes."""
    shell = "".join(text for language, text in blocks(page) if language in ("", "bash", "sh", "console"))
    lines = [line.strip().removeprefix("$ ") for line in shell.replace("\\\n", " ").splitlines()]
    outside = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    inline = [text for text in re.findall(r"`([^`\n]+)`", outside) if re.match(r"(\w+=\S+ )*(albert-lab|make) ", text)]
    return [line for line in (*lines, *inline) if re.match(r"(\w+=\S+ )*(albert-lab|make)\b", line)]


COMMANDS = sorted({line for page in PAGES for line in commands(page)})


def test_the_front_door_is_short_and_has_ten_commands():
    readme = PAGES[0].read_text()
    assert len(readme.splitlines()) <= 150
    assert len(re.findall(r"^\| `albert-lab ", readme, re.MULTILINE)) == 10
    assert len(COMMANDS) > 80


@pytest.mark.parametrize("line", [line for line in COMMANDS if "albert-lab" in line])
def test_a_command_of_the_docs_exists_takes_these_options_and_composes(line):
    words = shlex.split(line, comments=True)
    words = words[words.index("albert-lab") + 1 :]
    if words == ["COMMAND", "-h"]:
        return
    command, name = typer.main.get_command(app), []
    while words and words[0] in getattr(command, "commands", {}):
        command = command.commands[words[0]]  # pyright: ignore[reportAttributeAccessIssue]
        name.append(words.pop(0))
    if words in (["-h"], ["--install-completion"]) or (name and not words and hasattr(command, "commands")):
        return
    assert name, f"{line}: no such command"
    context = command.make_context(" ".join(name), list(words))  # an option that is not there raises
    assert context.command is command
    settings = [word for word in words if re.match(r"[\w.]+=", word)]
    check(" ".join(name), settings)


def check(name: str, settings: list[str]) -> None:
    """Composes the runs that a command asks for."""
    if name in EXPERIMENTS:
        assert points(experiment.named(name), settings)
    elif name == "sweep":
        assert points(*experiment.from_overrides(settings))
    elif name in GRAMMAR_ALONE:
        assert len(axes(settings)) == len(settings)
    elif settings and name != "speed":  # whose models are rows of Tables 1 and 2
        assert load(settings)


@pytest.mark.parametrize("line", [line for line in COMMANDS if "albert-lab" not in line])
def test_a_make_command_of_the_docs_is_a_target(line):
    words = [word for word in shlex.split(line, comments=True) if "=" not in word]
    targets = re.findall(r"^([a-z-]+):", (CHECKOUT / "Makefile").read_text(), re.MULTILINE)
    assert words[0] == "make"
    assert set(words[1:]) <= set(targets)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_link_of_the_docs_leads_somewhere(page):
    text = re.sub(r"<!--.*?-->", "", page.read_text(), flags=re.DOTALL)
    for target in re.findall(r"\]\((?!https?:)([^)]+)\)", text):
        file, _, anchor = target.partition("#")
        found = (page.parent / file).resolve() if file else page
        assert found.exists(), target
        if anchor:
            headings = re.findall(r"^#+ (.+)$", found.read_text(), re.MULTILINE)
            assert anchor in {re.sub(r"[^\w -]", "", words.lower()).replace(" ", "-") for words in headings}, target


def test_the_experiment_file_of_the_docs_is_one(tmp_path):
    texts = [text for page in PAGES for language, text in blocks(page) if language == "yaml" and "grid:" in text]
    assert texts
    for text in texts:
        file = tmp_path / "my-study.yaml"
        file.write_text(text)
        assert points(experiment.read(file), ["seed=0"])


def test_every_key_of_an_experiment_file_and_every_variable_is_documented():
    study = (CHECKOUT / "docs" / "your-own-study.md").read_text()
    assert all(f"`{key}`" in study for key in experiment.Experiment.model_fields if key != "name")
    environment = (CHECKOUT / "docs" / "environment.md").read_text()
    code = "".join(file.read_text() for file in paths.PACKAGE.rglob("*.py"))
    read = set(re.findall(r'environ(?:\.get\(|\[)"(ALBERT_LAB_\w+)"', code))
    assert len(read) > 4
    assert all(f"`{name}`" in environment for name in read - {"ALBERT_LAB_THREADS"})  # of a child process


def test_every_group_of_the_configuration_is_documented():
    text = (CHECKOUT / "docs" / "configuration.md").read_text()
    config = OmegaConf.load(paths.CONF / "config.yaml")
    groups = {key for item in config.defaults if not isinstance(item, str) for key in item}
    assert all(f"`{group}`" in text for group in groups)
