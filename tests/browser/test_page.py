"""The page of a report as browsers show it, on a phone and on a desktop."""

import re

import pytest

from albert_lab.report import report


def test_no_page_scrolls_sideways_and_every_table_is_within_its_box(visit):
    assert visit.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    for box in visit.page.locator(".table").all():
        assert box.evaluate("box => box.getBoundingClientRect().right <= innerWidth")


def test_the_picture_is_shown_within_the_page(visit):
    (picture,) = visit.page.locator("img").all()
    assert picture.evaluate("image => image.naturalWidth") > 100
    assert picture.evaluate("image => image.getBoundingClientRect().right <= innerWidth")


def test_a_folded_part_opens_at_a_click(visit):
    part = visit.page.locator("details").first
    assert not part.locator("table").first.is_visible()
    part.locator("summary").click()
    assert part.locator("table").first.is_visible()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_is_readable_in_each_colour_scheme(browser, folder, scheme):
    page = browser.new_page(color_scheme=scheme)
    page.goto((folder / report.PAGE).as_uri())
    paper = page.locator("body").evaluate("body => getComputedStyle(body).backgroundColor")
    for selector in ("p", "td", "th", "li", "code"):
        ink = page.locator(selector).first.evaluate("part => getComputedStyle(part).color")
        assert contrast(ink, paper) >= 4.5, selector
    page.close()


def contrast(first: str, second: str) -> float:
    """Of two colours as browsers compute them (WCAG 2)."""

    def luminance(colour: str) -> float:
        channels = [int(part) / 255 for part in re.findall(r"\d+", colour)[:3]]
        red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels)
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue

    light, dark = sorted((luminance(first), luminance(second)), reverse=True)
    return (light + 0.05) / (dark + 0.05)
