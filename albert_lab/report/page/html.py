"""Markdown as a page of HTML in one self-contained file, which makes no network requests."""

import base64
import hashlib
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from markdown_it.utils import EnvType, OptionsDict
from markupsafe import Markup, escape

from albert_lab.report.markdown import MISSING

TEMPLATES = Path(__file__).parent
HEADING_TOKENS = 3  # its opening, its text and its end
LONG_CELL = 60  # characters
IMAGES = {".svg": "image/svg+xml", ".png": "image/png"}
# A number with thousands separators, or two of them (F1/EM), then the end or a suffix of numbers.
_DIGITS = r"[+−-]?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?:e[+-]?\d+)?"
_NUMBER = re.compile(rf"({_DIGITS})(?:/({_DIGITS}))?[KMBx%]?(?=[\s,;]|$)")


@dataclass(frozen=True)
class PageSection:
    """A section that the Markdown lacks: its heading, its content, and the heading before it."""

    heading: str
    body: Markup
    after: str


@dataclass(frozen=True)
class _PagePart:
    """A section of a page: its heading, its name for links, and its content."""

    name: str
    heading: str
    body: Markup
    is_folded: bool = False


def page(text: str, folder: Path, *sections: PageSection, folded: Collection[str] = ()) -> str:
    """A whole page: Markdown with sortable tables and embedded images, and further sections.

    HTML in the Markdown is escaped. An image that is no SVG or PNG file in the folder becomes its description.

    Args:
        text: Markdown that begins with a heading of the first level.
        folder: the base of the paths of its images.
        sections: sections to insert between those of the second level.
        folded: headings of sections that are folded until a click.
    """
    tokens = _parser().parse(text)
    starts = [place for place, token in enumerate(tokens) if token.type == "heading_open" and token.tag == "h2"]
    starts.append(len(tokens))
    title = next(_plain(after) for token, after in pairwise(tokens) if token.tag == "h1")
    _name_headings(tokens)
    for part in _tables(tokens):
        _mark_columns(part)
    parts: list[_PagePart] = []
    for start, end in pairwise(starts):
        heading = _plain(tokens[start + 1])
        body = _rendered(tokens[start + HEADING_TOKENS : end], folder, heading)
        parts.append(_PagePart(str(tokens[start].attrs["id"]), heading, body, heading in folded))
        parts += [
            _PagePart(_anchor(section.heading), section.heading, section.body)
            for section in sections
            if section.after == heading
        ]
    assert len(parts) == len(starts) - 1 + len(sections), "a section comes after an existing heading"
    style, script = (TEMPLATES.joinpath(name).read_text(encoding="utf-8") for name in ("page.css", "page.js"))
    whole = render(
        "page.html.j2",
        title=title,
        opening=_rendered(tokens[: starts[0]], folder, title),
        parts=parts,
        style=Markup(style),
        script=Markup(script),
        style_hash=_hash(style),
        script_hash=_hash(script),
    )
    return str(whole)


def render(template: str, **values: object) -> Markup:
    """A filled template of this package's pages; texts are escaped."""
    return Markup(_environment().get_template(template).render(**values))


@cache
def _environment() -> Environment:
    return Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )


def sort_value(cell: str) -> float | None:
    """The number by which a cell is sorted: the one at its start, or the mean of F1/EM; None if it starts with text."""
    match = _NUMBER.match(cell)
    if not match:
        return None
    values = [float(digits.replace(",", "").replace("−", "-")) for digits in match.groups() if digits]
    return sum(values) / len(values)


@cache
def _parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False}).enable("table")
    parser.add_render_rule("image", _image)
    parser.add_render_rule("table_open", _table_open)
    parser.add_render_rule("table_close", _table_close)
    parser.add_render_rule("link_open", _link_open)
    return parser


def _rendered(tokens: Sequence[Token], folder: Path, heading: str) -> Markup:
    parser = _parser()
    return Markup(parser.renderer.render(tokens, parser.options, {"folder": folder, "heading": heading}))


def _hash(text: str) -> str:
    """The hash of an inline script or style for a content security policy."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _plain(inline: Token) -> str:
    return "".join(child.content for child in inline.children or [])


def _anchor(heading: str) -> str:
    return re.sub(r"\W+", "-", heading.casefold()).strip("-")


def _name_headings(tokens: Sequence[Token]) -> None:
    counts: dict[str, int] = {}
    for token, inline in pairwise(tokens):
        if token.type == "heading_open":
            name = _anchor(_plain(inline))
            counts[name] = counts.get(name, 0) + 1
            token.attrs["id"] = name if counts[name] == 1 else f"{name}-{counts[name]}"


def _tables(tokens: Sequence[Token]) -> list[Sequence[Token]]:
    starts = [place for place, token in enumerate(tokens) if token.type == "table_open"]
    ends = [place for place, token in enumerate(tokens) if token.type == "table_close"]
    return [tokens[start:end] for start, end in zip(starts, ends, strict=True)]


def _mark_columns(table: Sequence[Token]) -> None:
    """Mark each column as numbers of a kind, or as text that needs several lines."""
    cells = [(token, table[place + 1].content) for place, token in enumerate(table) if token.type == "td_open"]
    headers = [token for token in table if token.type == "th_open"]
    for token in (*headers, *(cell for cell, _ in cells)):
        token.attrs.pop("style", None)  # the policy of the page allows no style in an attribute
    for place, header in enumerate(headers):
        column = [(cell, text, sort_value(text)) for cell, text in cells[place :: len(headers)]]
        is_number = all(value is not None or _is_missing(text) for _, text, value in column)
        is_long = max((len(text) for _, text, _ in column), default=0) > LONG_CELL
        for token in (header, *(cell for cell, _, _ in column)):
            if is_number or is_long:
                token.attrs["class"] = "number" if is_number else "words"
        for cell, _, value in column:
            if is_number and value is not None:
                cell.attrs["data-value"] = f"{value:.12g}"


def _is_missing(cell: str) -> bool:
    return cell in ("", MISSING, "nan")


def _image(
    renderer: RendererHTML, tokens: Sequence[Token], place: int, options: OptionsDict, environment: EnvType
) -> str:
    source, alt = str(tokens[place].attrs["src"]), tokens[place].content
    folder = environment["folder"].resolve()
    file = (folder / source).resolve()
    if file.suffix not in IMAGES or not file.is_relative_to(folder) or not file.is_file():
        return str(escape(alt))
    content = base64.b64encode(file.read_bytes()).decode()
    frame = (
        '<span class="figure" tabindex="0" role="group" aria-label="{}"><img alt="{}" src="data:{};base64,{}"></span>'
    )
    return str(Markup(frame).format(f"Figure {alt}", alt, IMAGES[file.suffix], content))


def _table_open(
    renderer: RendererHTML, tokens: Sequence[Token], place: int, options: OptionsDict, environment: EnvType
) -> str:
    box = '<div class="table" tabindex="0" role="region" aria-label="{}"><table>\n'
    return str(Markup(box).format(f"Table: {environment['heading']}"))


def _table_close(
    renderer: RendererHTML, tokens: Sequence[Token], place: int, options: OptionsDict, environment: EnvType
) -> str:
    return "</table></div>\n"


def _link_open(
    renderer: RendererHTML, tokens: Sequence[Token], place: int, options: OptionsDict, environment: EnvType
) -> str:
    """Link to the page of a report instead of its Markdown."""
    token = tokens[place]
    address = str(token.attrs["href"])
    if re.fullmatch(r"(?!\w+:)(.*/)?report\.md", address):
        token.attrs["href"] = address.removesuffix(".md") + ".html"
    return renderer.renderToken(tokens, place, options, environment)
