"""A real Chromium, and reports for it to open."""

import os
import shutil
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Error, Playwright, sync_playwright
from toy_reports import toy_report

from albert_lab.report import report
from albert_lab.studies import experiment

NAMES = ("chromium", "chromium-browser", "chromium-headless-shell", "google-chrome", "google-chrome-stable")
SIZES = {"phone": (390, 844), "desktop": (1280, 800)}
HOW = (
    "install Chromium (Debian: `apt-get install chromium`; elsewhere: `.venv/bin/playwright install chromium`), or name"
    " one by ALBERT_LAB_CHROMIUM"
)


def chromium(playwright: Playwright) -> str:
    named = os.environ.get("ALBERT_LAB_CHROMIUM")
    if named:
        return named
    own = playwright.chromium.executable_path  # where `playwright install` puts it
    result = own if Path(own).exists() else next(filter(None, map(shutil.which, NAMES)), None)
    if result is None:
        pytest.exit(f"no Chromium here: {HOW}", returncode=1)
    return result


@pytest.fixture(scope="session")
def browser():
    with sync_playwright() as playwright:
        path = chromium(playwright)
        # Its sandbox does not work for root, as in a container; it opens nothing but files of these tests.
        sandbox = [] if os.getuid() else ["--no-sandbox"]
        try:
            opened = playwright.chromium.launch(executable_path=path, args=sandbox)
        except Error as error:
            pytest.exit(f"{path} does not start: {error.message.splitlines()[0]}; {HOW}", returncode=1)
        yield opened
        opened.close()


@pytest.fixture(scope="session", params=["sharing", "sop-vs-nsp", "layer-similarity"])
def folder(request, tmp_path_factory):
    """A report from fixed records, with its figures."""
    folder = toy_report(
        tmp_path_factory.mktemp("reports") / request.param, experiment.named(request.param), 3, full=True
    )
    report.rebuild(folder)
    return folder


class Visit:
    """A page as it is opened: what it asked for, and what it complained of."""

    def __init__(self, browser: Browser, file: Path, size: str, **options) -> None:
        width, height = SIZES[size]
        options |= {"has_touch": size == "phone", "viewport": {"width": width, "height": height}}
        self.context = browser.new_context(**options)
        self.page = self.context.new_page()
        self.requests: list[str] = []
        self.complaints: list[str] = []
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.goto(file.as_uri())
        self.page.evaluate("document.querySelectorAll('details').forEach(each => each.open = true)")


@pytest.fixture(params=SIZES)
def visit(request, browser, folder):
    """The report's page on a phone and on a desktop, which asks for nothing and complains of nothing all along."""
    result = Visit(browser, folder / report.PAGE, request.param)
    yield result
    assert result.complaints == []
    assert [url for url in result.requests if not url.startswith("data:")] == [(folder / report.PAGE).as_uri()]
    result.context.close()
