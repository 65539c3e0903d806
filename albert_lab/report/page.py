"""The Markdown of a report as a page of HTML in one self-contained file, without scripts and
network requests.
"""

import base64
import re
from html import escape
from pathlib import Path
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.token import Token

STYLE = Path(__file__).with_name("page.css")
NARROW = "\u00a0±\u00a0"  # a number and its spread stay on one line
_FOLD = re.compile(r"^(?:<details><summary>([\w ]+)</summary>|(</details>))$", re.MULTILINE)


def page(title: str, text: str, folder: Path) -> str:
    """A whole page of Markdown; tags in it are shown, not followed.

    Args:
        title: of the window, as plain text.
        text: the Markdown; lines that open and close a folded part stay so.
        folder: of its pictures, which are embedded; one that is not there becomes its description.
    """
    parser = MarkdownIt("commonmark", {"html": False}).enable("table")
    rules: Any = parser.renderer.rules  # pyright: ignore[reportAttributeAccessIssue]
    rules["image"] = lambda tokens, place, *_: _image(tokens[place], folder)
    rules["table_open"] = lambda *_: '<div class="table"><table>\n'
    rules["table_close"] = lambda *_: "</table></div>\n"
    parts = _FOLD.split(text)
    body = parser.render(parts[0])
    for summary, _, part in zip(parts[1::3], parts[2::3], parts[3::3], strict=True):
        body += (
            f"<details><summary>{summary}</summary>\n" if summary else "</details>\n"
        ) + parser.render(part)
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>\n{STYLE.read_text(encoding='utf-8')}</style>\n"
        f"</head>\n<body>\n<main>\n{body.replace(' ± ', NARROW)}</main>\n</body>\n</html>\n"
    )


def _image(token: Token, folder: Path) -> str:
    """A picture of the folder, embedded; its description if it is no PNG file there."""
    file = folder / str(token.attrs.get("src", ""))
    words = escape(token.content)
    if file.suffix != ".png" or file.parent != folder or not file.is_file():
        return words
    content = base64.b64encode(file.read_bytes()).decode()
    return f'<img alt="{words}" src="data:image/png;base64,{content}">'
