"""The page of a report in a real Chromium, as wide as a phone and as a desktop."""

import os
import shutil
from pathlib import Path

import pytest
from playwright.sync_api import sync_playwright
from toy_reports import toy_report

from albert_lab.report import report
from albert_lab.studies import experiment

NAMES = (
    "chromium",
    "chromium-browser",
    "chromium-headless-shell",
    "google-chrome",
    "google-chrome-stable",
)
SIZES = {"phone": (390, 844), "desktop": (1280, 800)}


@pytest.fixture(scope="session")
def browser():
    with sync_playwright() as playwright:
        own = playwright.chromium.executable_path  # where `playwright install chromium` puts it
        known = [
            os.environ.get("ALBERT_LAB_CHROMIUM"),
            own if Path(own).exists() else None,
            *map(shutil.which, NAMES),
        ]
        path = next(filter(None, known), None)
        if path is None:
            pytest.exit(
                "no Chromium here: `apt-get install chromium`, or name one by ALBERT_LAB_CHROMIUM",
                1,
            )
        # Its sandbox does not work for root, as in a container; it opens nothing but files of these
        # tests.
        opened = playwright.chromium.launch(
            executable_path=path, args=[] if os.getuid() else ["--no-sandbox"]
        )
        yield opened
        opened.close()


@pytest.fixture(scope="session", params=["sharing", "sop-vs-nsp", "layer-similarity"])
def file(request, tmp_path_factory):
    """The page of a report from fixed records, with its picture."""
    folder = tmp_path_factory.mktemp("reports") / request.param
    report.rebuild(toy_report(folder, experiment.named(request.param), 3, full=True))
    return folder / report.PAGE


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_page_fits_shows_its_picture_folds_and_asks_for_nothing(browser, file, size, scheme):
    width, height = SIZES[size]
    context = browser.new_context(color_scheme=scheme, viewport={"width": width, "height": height})
    page, requests, complaints = context.new_page(), [], []
    page.on("request", lambda request: requests.append(request.url))
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.goto(file.as_uri())
    part = page.locator("details").first
    assert not part.locator("table").first.is_visible()
    part.locator("summary").click()
    assert part.locator("table").first.is_visible()
    page.evaluate("document.querySelectorAll('details').forEach(each => each.open = true)")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    for box in page.locator(".table, img").all():
        assert box.evaluate("box => box.getBoundingClientRect().right <= innerWidth")
    (picture,) = page.locator("img").all()
    assert picture.evaluate("image => image.naturalWidth") > 100
    assert complaints == []
    assert [url for url in requests if not url.startswith("data:")] == [file.as_uri()]
    context.close()
