"""Every command, setting and link in README.md, docs/ and the help of commands exists."""

import re
import shlex
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import typer.main
from omegaconf import OmegaConf

from albert_lab import machine, paths, signals
from albert_lab.cli.app import app
from albert_lab.config.compose import axes, load
from albert_lab.studies import experiment
from albert_lab.studies.grid import variants
from albert_lab.tasks.formats import ChoicesFormat, GlueFormat, RaceFormat, SquadFormat

CHECKOUT = paths.PACKAGE.parent
PAGES = [CHECKOUT / "README.md", *sorted((CHECKOUT / "docs").glob("*.md"))]
EXPERIMENTS = [file.stem for file in experiment.files()]
# Commands whose settings are those of a run or of a task's file, which a page does not have.
GRAMMAR_ALONE = ["run", "finetune", "plot"]


def blocks(page: Path) -> list[tuple[str, str]]:
    """Language and text of each fenced block."""
    return re.findall(r"^```(\w*)\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL)


def commands(page: Path) -> list[str]:
    """Every command line of the shell blocks, and every `albert-lab ...` between backquotes."""
    shell = "".join(
        text for language, text in blocks(page) if language in ("", "bash", "sh", "console")
    )
    lines = [line.strip().removeprefix("$ ") for line in shell.replace("\\\n", " ").splitlines()]
    outside = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    inline = [
        text
        for text in re.findall(r"`([^`\n]+)`", outside)
        if re.match(r"(\w+=\S+ )*(albert-lab|make) ", text)
    ]
    return [line for line in (*lines, *inline) if re.match(r"(\w+=\S+ )*(albert-lab|make)\b", line)]


def helps(command: Any, words: tuple[str, ...] = ()) -> Iterator[tuple[str, Any]]:
    """A command and all its sub-commands, by the words of their names."""
    yield " ".join(words), command
    for name, inner in getattr(command, "commands", {}).items():
        yield from helps(inner, (*words, name))


def examples(command: Any) -> list[str]:
    """The command lines at the end of a command's help."""
    epilog: str = command.epilog or ""
    return epilog.split("\n\n")[1:]  # the first says "Examples:"


HELPS = dict(helps(typer.main.get_command(app)))
# the help of other studies is made in the same way, and takes time to compose
ONE_STUDY = "sop-vs-nsp"
COMMANDS = sorted({line for page in PAGES for line in commands(page)})
OTHERS = [
    command for name, command in HELPS.items() if name not in EXPERIMENTS and not command.hidden
]
SHOWN = {line for command in OTHERS for line in examples(command)}
EXAMPLES = sorted((SHOWN | set(examples(HELPS[ONE_STUDY]))) - set(COMMANDS))


@pytest.mark.parametrize("line", EXAMPLES)
def test_the_examples_in_the_help_exist_accept_their_options_and_compose(line):
    check_command(line)


@pytest.mark.parametrize("name", ["pretrain", "sweep", ONE_STUDY])
def test_each_setting_in_the_help_composes(name):
    (argument,) = [param for param in HELPS[name].params if param.name == "overrides"]
    named = re.findall(r"([a-z_.]+=[\w.,-]*\w)", argument.help)
    assert len(named) >= 3
    together = {text.split("=")[0]: text for text in named}
    check(name, *together.values())


@pytest.mark.parametrize("line", [line for line in COMMANDS if "albert-lab" in line])
def test_the_commands_in_the_docs_exist_accept_their_options_and_compose(line):
    check_command(line)


def check_command(line: str) -> None:
    """Executes a command line up to the composition of its configurations, without training."""
    words = shlex.split(line, comments=True)
    words = words[words.index("albert-lab") + 1 :]
    if words == ["COMMAND", "-h"]:
        return
    command, name = typer.main.get_command(app), []
    while words and words[0] in getattr(command, "commands", {}):
        command = command.commands[words[0]]  # pyright: ignore[reportAttributeAccessIssue]
        name.append(words.pop(0))
    if words in (["-h"], ["--install-completion"]) or (
        name and not words and hasattr(command, "commands")
    ):
        return
    assert name, f"{line}: no such command"
    for option in ("--include", "--conf"):  # files of the reader
        while option in words:
            del words[words.index(option) : words.index(option) + 2]
    context = command.make_context(" ".join(name), list(words))  # an unknown option raises an error
    assert context.command is command
    settings = [
        word for word in words if re.match(r"(?!start_from=|budget.value=0)[\w.]+=", word)
    ]  # of a run of the reader
    check(" ".join(name), *settings)


@cache
def check(name: str, *settings: str) -> None:
    """Composes the runs of a command."""
    if name in EXPERIMENTS:  # of one seed: others are composed in the same way
        assert variants(
            experiment.named(name),
            [*(text for text in settings if not text.startswith("seed=")), "seed=0"],
        )
    elif name == "sweep":
        assert variants(*experiment.from_overrides(settings))
    elif name in GRAMMAR_ALONE:
        assert len(axes(settings)) == len(settings)
    elif settings:
        assert load([*settings])


@pytest.mark.parametrize("line", [line for line in COMMANDS if "albert-lab" not in line])
def test_a_make_command_of_the_docs_is_a_target(line):
    words = [word for word in shlex.split(line, comments=True) if "=" not in word]
    targets = re.findall(r"^([a-z-]+):", (CHECKOUT / "Makefile").read_text(), re.MULTILINE)
    assert words[0] == "make"
    assert set(words[1:]) <= set(targets)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_target_of_a_link_in_the_docs_exists(page):
    text = re.sub(r"<!--.*?-->", "", page.read_text(), flags=re.DOTALL)
    for target in re.findall(r"\]\((?!https?:)([^)]+)\)", text):
        file, _, anchor = target.partition("#")
        result = (page.parent / file).resolve() if file else page
        assert result.exists(), target
        if anchor:
            headings = re.findall(r"^#+ (.+)$", result.read_text(), re.MULTILINE)
            assert anchor in {
                re.sub(r"[^\w -]", "", words.lower()).replace(" ", "-") for words in headings
            }, target


def test_the_experiment_file_in_the_docs_is_valid(tmp_path):
    texts = [
        text
        for page in PAGES
        for language, text in blocks(page)
        if language == "yaml" and "grid:" in text
    ]
    assert texts
    for text in texts:
        file = tmp_path / "my-study.yaml"
        file.write_text(text)
        assert variants(experiment.read(file), ["seed=0"])


def test_every_key_of_an_experiment_file_and_every_variable_is_documented():
    study = (CHECKOUT / "docs" / "your-own-study.md").read_text()
    assert all(f"`{key}`" in study for key in experiment.Experiment.model_fields if key != "name")
    environment = (CHECKOUT / "docs" / "getting-started.md").read_text()
    code = "".join(file.read_text() for file in paths.PACKAGE.rglob("*.py"))
    read = set(re.findall(r'"(ALBERT_LAB_\w+)"', code))
    of_a_child = {machine.JOBS, machine.JOBS_ON_GPU, machine.THREADS, signals.PARENT}
    assert read > of_a_child
    assert all(f"`{name}`" in environment for name in read - of_a_child)


def test_every_key_of_a_format_of_tasks_is_in_the_table_of_them():
    text = (CHECKOUT / "docs" / "data-and-tasks.md").read_text()
    table = text.partition("The keys of `format`")[2].partition("What a task file")[0]
    formats = (GlueFormat, ChoicesFormat, RaceFormat, SquadFormat)
    assert not [key for form in formats for key in form.model_fields if f"`{key}`" not in table]
    assert all(f"`{name}`" in table for name in ("glue", "choices", "race", "squad"))


def test_every_group_of_the_configuration_is_documented():
    text = (CHECKOUT / "docs" / "configuration.md").read_text()
    config = OmegaConf.load(paths.CONF / "config.yaml")
    groups = {key for item in config.defaults if not isinstance(item, str) for key in item}
    assert all(f"`{group}`" in text for group in groups)
