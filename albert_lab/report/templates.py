"""Markdown from templates, which hold the prose of reports and decide nothing but wording."""

import re
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from albert_lab.report.markdown import decimal, number, percent_interval
from albert_lab.units import duration

FOLDER = Path(__file__).parent / "templates"


def fill(template: str, **values: object) -> str:
    """A filled template, with single empty lines between its paragraphs."""
    text = _environment().get_template(template).render(**values)
    return re.sub(r"\n{3,}", "\n\n", text).strip() + "\n"


def fill_lines(template: str, **values: object) -> list[str]:
    """The lines of a filled template, without empty ones."""
    return [line for line in fill(template, **values).splitlines() if line]


def call(template: str, macro: str, *values: object) -> str:
    """What a macro of a template makes of some values, on one line."""
    module: Any = _environment().get_template(template).module
    return str(getattr(module, macro)(*values)).strip()


@cache
def _environment() -> Environment:
    # Not escaped: the Markdown of a report is made a page by report/page/html.py, which escapes HTML in it.
    environment = Environment(
        loader=FileSystemLoader(FOLDER), undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters |= {
        "number": number,
        "decimal": decimal,
        "percent_interval": percent_interval,
        "duration": duration,
    }
    return environment
