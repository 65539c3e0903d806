"""A hook of MkDocs: Markdown of GitHub that MkDocs reads in another way."""

import re
from typing import Any


def on_page_markdown(markdown: str, **_: Any) -> str:
    """The page with Markdown read within <details>, and with a blank line between a paragraph and
    its list.
    """
    markdown = markdown.replace("<details>", '<details markdown="1">')
    return re.sub(r"^(?![-*|] | )(.+)\n(?=- )", r"\1\n\n", markdown, flags=re.MULTILINE)
