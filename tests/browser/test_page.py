"""The page of a report in a real browser, at the width of a phone and of a desktop."""

import re
import shutil

import pytest

from albert_lab.report import report
from albert_lab.report.page import html
from albert_lab.studies import study

ROWS = """table => [...table.tBodies[0].rows].map(row => [...row.cells].map(cell => cell.textContent.trim()))"""


def column(table, place):
    return [row[place] for row in table.evaluate(ROWS)]


def numbers(cells):
    """The first number of each cell, by another way than the page's own."""
    return [float(re.findall(r"[\d.]+", cell.replace(",", ""))[0]) for cell in cells if cell not in ("", "—")]


def test_the_page_is_as_wide_as_the_screen_and_wide_tables_scroll(visit, folder):
    width = visit.page.evaluate("innerWidth")
    visit.page.screenshot(path=folder / f"{width}.png", full_page=True)
    assert visit.page.evaluate("document.documentElement.scrollWidth") == width
    for box in visit.page.locator(".table, .figure").all():
        place = box.bounding_box()
        assert place["x"] >= 0
        assert place["x"] + place["width"] <= width
    moved = visit.page.locator(".table").evaluate_all(
        """boxes => boxes.filter(box => box.scrollWidth > box.clientWidth).map(box => {
            box.scrollLeft = box.scrollWidth;
            return box.querySelector("th:last-child").getBoundingClientRect().right;
        })"""
    )
    assert all(right <= width for right in moved)


def test_every_table_sorts_by_every_column_up_and_down_and_back(visit):
    tables = visit.page.locator("table").all()
    assert len(tables) >= 3
    for table in tables:
        own = table.evaluate(ROWS)
        for place, header in enumerate(table.locator("th").all()):
            if not header.inner_text().strip() or len(own) < 2:
                assert header.locator("button").count() == 0
                continue
            is_number = "number" in (header.get_attribute("class") or "")
            button = header.locator("button")
            for order in ("ascending", "descending"):
                button.evaluate("button => button.click()")
                assert header.get_attribute("aria-sort") == order
                assert table.locator("[aria-sort]").count() == 1
                cells = column(table, place)
                missing = [cell in ("", "—") for cell in cells]
                assert missing == sorted(missing)  # the missing last, whichever way
                if is_number and not any("/" in cell for cell in cells):
                    assert numbers(cells) == sorted(numbers(cells), reverse=order == "descending")
                assert sorted(table.evaluate(ROWS)) == sorted(own)
            button.evaluate("button => button.click()")
            assert header.get_attribute("aria-sort") is None
            assert table.evaluate(ROWS) == own


def test_decimals_thousands_and_signs_sort_as_numbers_and_equal_ones_stay_in_order(browser, tmp_path):
    cells = ["9.5 ± 0.1", "—", "10.0", "9.25 ± 3", "1,000", "−3.0", "9.50 ± 0.2", "88.6/81.5"]
    text = "# Numbers\n\n| number |\n|---:|\n" + "".join(f"| {cell} |\n" for cell in cells)
    file = tmp_path / "numbers.html"
    file.write_text(html.page(text, tmp_path))
    page = browser.new_page()
    page.goto(file.as_uri())
    table, up = (
        page.locator("table"),
        ["−3.0", "9.25 ± 3", "9.5 ± 0.1", "9.50 ± 0.2", "10.0", "88.6/81.5", "1,000", "—"],
    )
    down = ["1,000", "88.6/81.5", "10.0", "9.5 ± 0.1", "9.50 ± 0.2", "9.25 ± 3", "−3.0", "—"]
    for order in (up, down, cells):
        page.get_by_role("button", name="number").click()
        assert column(table, 0) == order
    page.close()


@pytest.mark.parametrize("folder", ["sharing"], indirect=True)
def test_numbers_sort_as_numbers_pairs_by_their_mean_and_words_as_words(visit):
    costs = visit.page.locator("section", has=visit.page.locator("h2#cost")).locator("table")
    costs.get_by_role("button", name="parameters").click()
    assert column(costs, 2)[0] == "31,000"
    assert column(costs, 2)[-1] == "248,000"
    costs.get_by_role("button", name="sharing").click()
    assert column(costs, 1)[:2] == ["all-shared", "all-shared"]
    tuned = visit.page.locator("section", has=visit.page.locator("h2#scores-after-fine-tuning")).locator("table")
    header = tuned.get_by_role("columnheader").nth(3)
    header.get_by_role("button").click()
    header.get_by_role("button").click()
    pairs = [re.findall(r"[\d.]+", cell)[:2] for cell in column(tuned, 3)]
    means = [(float(f1) + float(em)) / 2 for f1, em in pairs[:-1]]
    assert means == sorted(means, reverse=True)
    assert column(tuned, 3)[-1] == "—"


def test_the_keyboard_reaches_a_header_and_sorts_by_it(visit):
    header = visit.page.locator("th").first
    for _ in range(40):
        visit.page.keyboard.press("Tab")
        if header.evaluate("header => header.contains(document.activeElement)"):
            break
    else:
        pytest.fail("40 steps of the tabulator do not lead to a header")
    assert header.locator("button").evaluate("button => getComputedStyle(button).outlineStyle") == "solid"
    visit.page.keyboard.press("Enter")
    assert header.get_attribute("aria-sort") == "ascending"
    visit.page.keyboard.press("Space")
    assert header.get_attribute("aria-sort") == "descending"


def test_the_first_screen_has_claims_the_picture_and_the_beginning_of_the_first_table(visit):
    visit.page.set_viewport_size({"width": 1280, "height": 900})
    visit.page.evaluate("scrollTo(0, 0)")
    picture, row = (visit.page.locator(name).first.bounding_box() for name in ("header img", "tbody tr"))
    assert picture["height"] <= 320
    assert picture["y"] + picture["height"] < row["y"]
    assert row["y"] + row["height"] <= 900
    visit.page.locator("header .figure").focus()  # at its full size
    full = visit.page.locator("header img").evaluate("image => [image.width, image.naturalWidth]")
    assert full[0] == full[1]


def test_every_figure_is_shown(visit, folder):
    sizes = visit.page.locator("img").evaluate_all("images => images.map(image => [image.naturalWidth, image.alt])")
    drawn = sorted(file.stem for file in folder.glob("*.svg"))
    assert sorted(alt for _, alt in sizes) == drawn
    assert all(width > 100 for width, _ in sizes)


def test_the_learning_curve_of_every_run_is_drawn_within_its_panel(visit, folder):
    finished = [run.name for run in study.read(folder).runs]
    panels = visit.page.locator(".panels svg").all()
    assert panels
    for panel in panels:
        assert panel.locator(".line title").evaluate_all("titles => titles.map(title => title.textContent)") == finished
        frame = panel.bounding_box()
        for line in panel.locator(".line").all():
            place = line.bounding_box()
            assert place["width"] > 50
            assert place["x"] >= frame["x"]
            assert place["x"] + place["width"] <= frame["x"] + frame["width"]
            assert place["y"] >= frame["y"] - 1
    buttons = visit.page.locator(".runs button")
    assert buttons.evaluate_all("buttons => buttons.map(button => button.title)") == finished


def test_pointing_at_a_curve_shows_its_run_and_value(visit, folder):
    panel = visit.page.locator(".panels svg").first
    panel.scroll_into_view_if_needed()
    line = panel.locator(".line").last
    x, y = line.evaluate(
        "line => { const point = line.points[3].matrixTransform(line.getScreenCTM()); return [point.x, point.y] }"
    )
    if visit.page.evaluate("innerWidth") < 400:
        visit.page.touchscreen.tap(x, y)
    else:
        visit.page.mouse.move(x, y)
    last = study.read(folder).runs[-1]
    run, score = last.name, last.curve[-1].value("mlm_accuracy")
    assert visit.page.locator(".reading").inner_text() == f"{run}: held-out MLM accuracy {score:.1f} % at 400 steps."
    assert panel.locator(".line.chosen title").evaluate_all("titles => titles.map(title => title.textContent)") == [run]
    assert panel.locator(".at").get_attribute("visibility") == "visible"


def test_a_selected_run_stays_selected_until_it_is_selected_again(visit, folder):
    button = visit.page.locator(".runs button").nth(1)
    chosen = visit.page.locator(".line.chosen")
    panels = visit.page.locator(".panels svg").count()
    button.click()
    visit.page.mouse.move(1, 1)
    visit.page.locator("h1").click()
    assert button.get_attribute("aria-pressed") == "true"
    assert chosen.count() == panels
    run = study.read(folder).runs[1].name
    assert visit.page.locator(".reading").inner_text().startswith(f"{run}: held-out MLM accuracy 21.0 % at 400 steps,")
    button.click()
    visit.page.mouse.move(1, 1)
    visit.page.locator("h1").click()
    assert chosen.count() == 0
    assert visit.page.locator(".reading").inner_text().startswith("Point at a curve")


def test_the_contents_lead_to_their_sections(visit):
    links = visit.page.locator("nav a")
    assert links.count() == visit.page.locator("h2").count()
    for target in links.evaluate_all("links => links.map(link => link.hash)"):
        assert visit.page.locator(f"h2{target}").count() == 1


def contrast(first: str, second: str) -> float:
    """Of two colours as browsers compute them (WCAG 2)."""

    def luminance(colour: str) -> float:
        channels = [int(part) / 255 for part in re.findall(r"\d+", colour)[:3]]
        red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels)
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue

    light, dark = sorted((luminance(first), luminance(second)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("folder", ["sharing"], indirect=True)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_and_lines_are_readable_in_each_colour_scheme(browser, folder, scheme):
    page = browser.new_page(color_scheme=scheme)
    page.goto((folder / report.PAGE).as_uri())
    paper = page.locator("body").evaluate("body => getComputedStyle(body).backgroundColor")
    assert (paper == "rgb(255, 255, 255)") == (scheme == "light")
    for selector in ("p", "td", "th", "nav a", "li", "code"):
        ink = page.locator(selector).first.evaluate("part => getComputedStyle(part).color")
        assert contrast(ink, paper) >= 4.5, selector
    strokes = (
        page.locator(".panels svg")
        .first.locator(".line")
        .evaluate_all("lines => [...new Set(lines.map(line => getComputedStyle(line).stroke))]")
    )
    assert len(strokes) == 4  # a colour for each strategy of sharing; dashes tell the embedding sizes apart
    assert min(contrast(stroke, paper) for stroke in strokes) >= 2
    page.close()


@pytest.mark.parametrize("folder", ["sharing"], indirect=True)
def test_on_paper_no_table_is_cut_off(browser, folder):
    page = browser.new_page(
        viewport={"width": 1015, "height": 700}
    )  # A4 across, at 96 dots an inch, within its margins
    page.emulate_media(media="print")
    page.goto((folder / report.PAGE).as_uri())
    right = page.locator("table, img, .panels figure").evaluate_all(
        "parts => Math.max(...parts.map(part => part.getBoundingClientRect().right))"
    )
    assert right <= 1015
    page.close()


@pytest.mark.parametrize("folder", ["sharing"], indirect=True)
def test_without_scripts_the_page_is_complete_and_static(browser, folder):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto((folder / report.PAGE).as_uri())
    assert page.locator("th button").count() == 0
    assert page.locator(".panels .line").count() == 46
    assert not page.locator(".reading").is_visible()
    context.close()


@pytest.mark.parametrize("folder", ["sop-vs-nsp"], indirect=True)
def test_names_that_look_like_markup_are_escaped(browser, folder, tmp_path):
    evil = "<img/src=x/onerror=alert(1)><script>alert(2)</script>"
    copy = shutil.copytree(folder, tmp_path / "evil")
    asked = (copy / study.EXPERIMENT).read_text()
    (copy / study.EXPERIMENT).write_text(re.sub("^title: .*", f"title: {evil}", asked, flags=re.MULTILINE))
    (copy / study.STUDY).write_text((copy / study.STUDY).read_text().replace("scale=smoke", evil))
    report.rebuild(copy)
    page = browser.new_page()
    alarms, requests = [], []
    page.on("dialog", lambda dialog: (alarms.append(dialog.message), dialog.dismiss()))
    page.on("request", lambda request: requests.append(request.url))
    page.goto((copy / report.PAGE).as_uri())
    assert evil in page.locator("h1").inner_text()
    assert page.locator("img[onerror], main script").count() == 0
    assert alarms == []
    assert [url for url in requests if not url.startswith("data:")] == [(copy / report.PAGE).as_uri()]
    page.close()
