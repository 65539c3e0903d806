import base64
import hashlib
import re
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markupsafe import Markup, escape

from albert_lab.report.page.html import PageSection, page, sort_value

TABLE = """
| row   |  MLM % | paper MLM | remark |
|:------|-------:|----------:|-------:|
| `b-2` | 9.0 ± 0.3 | 54.9 | {remark} |
| b-10  |      — |   1,000   | {remark} |
"""


def page_of(folder, text="", *sections):
    return page(f"# Title\n\nOpening.\n\n{text}\n", folder, *sections)


@pytest.mark.parametrize(
    ("cell", "value"),
    [
        ("81.2 ± 0.3", 81.2),
        ("29.0 [26.0, 32.0]", 29.0),
        ("1,234,567", 1234567),
        ("88.6/81.5", 85.05),
        ("15.0/5.0 ± 0.0", 10),
        ("48 (paper: 768)", 48),
        ("200 of 900", 200),
        ("31M", 31),
        ("4.7x", 4.7),
        ("−0.8", -0.8),
        ("+1.5", 1.5),
        ("1e-05", 1e-5),
        ("0, 1, 2", 0),
        ("3-groups", None),
        ("all-shared", None),
        ("—", None),
        ("", None),
    ],
)
def test_a_cell_is_sorted_by_the_number_at_its_start(cell, value):
    assert sort_value(cell) == pytest.approx(value)


@given(st.lists(st.floats(-1e6, 1e6), min_size=2))
def test_cells_sort_as_their_printed_numbers(values):
    printed = [sort_value(f"{value:,.1f} ± 0.4") for value in sorted(values)]
    assert all(one is not None and other is not None and one <= other for one, other in pairwise(printed))


def test_a_column_of_numbers_and_missing_cells_is_numeric(tmp_path):
    text = page_of(tmp_path, TABLE.format(remark="1 of two"))
    assert re.findall(r"<th(.*?)>(.*?)</th>", text) == [
        ("", "row"),
        (' class="number"', "MLM %"),
        (' class="number"', "paper MLM"),
        (' class="number"', "remark"),
    ]
    assert re.findall(r"<td(.*?)>(.*?)</td>", text)[:3] == [
        ("", "<code>b-2</code>"),
        (' class="number" data-value="9"', "9.0 ± 0.3"),
        (' class="number" data-value="54.9"', "54.9"),
    ]
    assert re.findall(r"<td(.*?)>(.*?)</td>", text)[5] == (' class="number"', "—")


def test_a_column_of_words_is_not_numeric_and_wraps_if_long(tmp_path):
    assert '<th class="number">remark' in page_of(tmp_path, TABLE.format(remark="1 of two words"))
    assert "<th>remark" in page_of(tmp_path, TABLE.format(remark="2-groups"))
    assert '<th class="words">remark' in page_of(tmp_path, TABLE.format(remark="word " * 20))


def test_markup_in_the_text_is_escaped(tmp_path):
    evil = "<script>alert(1)</script>"
    code = '`albert-lab corpus="<img src=x onerror=alert(1)>"`'
    text = page(
        f"# Title ({evil})\n\n## Part {evil}\n\nMade by {code} of {evil}.\n\n| {evil} |\n|---|\n| {evil} |\n", tmp_path
    )
    body = text.partition("</style>")[2]
    assert body.count("<script>") == 1  # the page's own
    assert "<img" not in text
    assert (
        text.count(str(escape(evil))) == 8
    )  # title twice, heading, contents, paragraph, label of the table, two cells


@pytest.mark.parametrize(
    "source",
    ["https://example.org/a.svg", "//example.org/a.svg", "../outside.svg", "absent.svg", "words.txt"],
)
def test_an_image_that_is_not_a_figure_of_the_folder_becomes_its_description(tmp_path, source):
    folder = tmp_path / "report"
    folder.mkdir()
    (tmp_path / "outside.svg").write_text("<svg/>")
    (folder / "words.txt").write_text("words")
    text = page_of(folder, f"![what it shows]({source})")
    assert "<img" not in text
    assert "<p>what it shows</p>" in text


def test_a_figure_is_embedded_in_the_page_with_its_description(tmp_path):
    (tmp_path / "one").mkdir()
    (tmp_path / "one" / "a.svg").write_text("<svg/>")
    text = page_of(tmp_path, '![curves of "a"](one/a.svg)')
    content = base64.b64encode(b"<svg/>").decode()
    assert f'<img alt="curves of &#34;a&#34;" src="data:image/svg+xml;base64,{content}">' in text


def test_the_policy_of_the_page_allows_only_its_script_and_style(tmp_path):
    text = page_of(tmp_path)
    policy = re.findall(r'Content-Security-Policy" content="(.*?)"', text)[0]
    assert policy.startswith("default-src 'none'; img-src data:;")
    for tag, rule in (("script", "script-src"), ("style", "style-src")):
        (inside,) = re.findall(rf"<{tag}>(.*?)</{tag}>", text, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(inside.encode()).digest()).decode()
        assert f"{rule} 'sha256-{digest}'" in policy
    assert " style=" not in page_of(tmp_path, TABLE.format(remark=""))


def test_the_contents_lead_to_every_section_once(tmp_path):
    parts = "## Cost\n\n### Detail\n\n## `Cost`\n\n## Figures\n"
    text = page_of(tmp_path, parts, PageSection("Curves", Markup("<p>drawn</p>"), after="Figures"))
    links = re.findall(r'<li><a href="#(.*?)">(.*?)</a>', text)
    assert links == [("cost", "Cost"), ("cost-2", "Cost"), ("figures", "Figures"), ("curves", "Curves")]
    assert all(text.count(f' id="{name}"') == 1 for name, _ in links)
    assert text.index('<h2 id="figures"') < text.index("<p>drawn</p>")


def test_a_folded_section_keeps_its_heading_and_its_place_in_the_contents(tmp_path):
    text = page("# Title\n\n## Cost\n\nMuch.\n\n## Notes\n\nFew.\n", tmp_path, folded=["Cost"])
    assert re.findall(r'<summary><h2 id="(.*?)">', text) == ["cost"]
    assert text.count("<details>") == 1
    assert re.findall(r'<a href="#(.*?)">', text) == ["cost", "notes"]


def test_a_link_to_a_report_leads_to_its_page(tmp_path):
    text = page_of(tmp_path, "[a](smoke-sotu/dropout/report.md) [b](notes.md) [c](https://example.org/report.md)")
    assert re.findall(r'<a href="(.*?)">', text) == [
        "smoke-sotu/dropout/report.html",
        "notes.md",
        "https://example.org/report.md",
    ]
