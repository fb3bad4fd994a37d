"""The report in a real browser."""

import json
import re

import pytest

from fedrain.cli import main
from fedrain.paper import load_results, write_report
from fedrain.plotting import DARK, style
from tests.paper import RESULTS
from tests.paper.browser import (
    choose,
    curves,
    move_slider,
    name,
    open_details,
    opened,
    scroll_to,
    wait_for,
    wait_for_tooltip,
)

WIDTHS = {"laptop": (1366, 900), "phone": (390, 844)}


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    path = tmp_path_factory.mktemp("report") / "report.html"
    assert main(["benchmark", "report", "--results", str(RESULTS), "--out", str(path)]) == 0
    return path


def test_needs_nothing_else(report):
    text = report.read_text("utf-8")
    assert report.stat().st_size < 5e6
    assert "src=" not in text
    assert "url(" not in text
    before, series = text.split('<script id="series" type="text/plain">')
    without = before + series.split("</script>", 1)[1]  # where any four letters may come up
    assert without.count("http") == without.count("http://www.w3.org/2000/svg") == 1
    assert not re.search(r"/\*[A-Z]+\*/", without)  # everything has been filled in


def test_colours_are_those_of_the_figures(report):
    """What is drawn has the colour that it has in every figure, and no colour is left undefined."""
    text = report.read_text("utf-8")
    defined = set(re.findall(r"(--[a-z0-9-]+):", text))
    assert set(re.findall(r"var\((--[a-z0-9-]+)\)", text)) <= defined
    light, after = text.split("@media (prefers-color-scheme: dark)")
    dark, printed = after.split("@media print")[:2]
    for key in ("target", "static", "limit", "model", "published", "ddpg", "td3", "tqc"):
        assert f"--{key}: {style(key).colour};" in light
        assert f"--{key}: {DARK[style(key).colour]};" in dark
        assert f"--{key}: {style(key).colour};" in printed  # paper is white


@pytest.mark.slow
def test_same_bytes_twice(report, tmp_path):
    again = tmp_path / "again.html"
    write_report(load_results(RESULTS), RESULTS, again)
    assert again.read_bytes() == report.read_bytes()


@pytest.fixture(params=WIDTHS)
def page(request, report):
    with opened(report, *WIDTHS[request.param]) as browser:
        yield browser


@pytest.fixture(scope="module")
def of_two_cells(tmp_path_factory):
    names = ("ebm-v1-ddpg-paper", "ebm-v3-a6-fed05-ddpg-paper")
    some = {c: result for c, result in load_results(RESULTS).items() if c.name in names}
    path = tmp_path_factory.mktemp("report") / "two.html"
    write_report(some, RESULTS, path)
    return path


def test_the_first_screen(page):
    """The message and the first figure stand in it, and nothing is wider than the screen."""
    width, height = page.execute_script("return [innerWidth, innerHeight]")
    assert page.execute_script("return document.documentElement.scrollWidth <= innerWidth")
    heading = page.execute_script("return document.querySelector('h1').textContent")
    assert re.search(r"5\.90\sK to 3\.02\sK", heading)
    for part in ("#choice", "#play", "#step", "#chart-temperature"):
        box = page.execute_script(
            "return document.querySelector(arguments[0]).getBoundingClientRect().toJSON()", part
        )
        assert box["top"] >= 0
        assert box["bottom"] <= min(height, 768), part  # that of a small laptop
        if width < 500 and part == "#step":
            assert box["width"] > 0.9 * width  # a thumb's way is the whole screen
    assert len(curves(page, "chart-temperature")) == 4


def test_slider_choices_and_figures(page):
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.by import By

    # The page is as wide as the screen, no wider, also with all open.
    open_details(page)
    assert page.execute_script("return document.documentElement.scrollWidth <= innerWidth")

    # The slider moves what moves, and not the target.
    choose(page, "algo", "td3")
    choose(page, "preset", "paper")
    choose(page, "agents", 2)
    assert name(page) == "of ebm-v3-a2-fed05-td3-paper"
    moving = ("temperature", "error", "A", "B", "longwave")
    end = {f"chart-{c}": curves(page, f"chart-{c}") for c in moving}
    assert [len(lines) for lines in end.values()] == [4, 3, 3, 3, 4]
    move_slider(page, 20)
    assert page.find_element(By.ID, "step-output").text == "day 81 (step 20 of 200)"
    for chart, before in end.items():
        after = curves(page, chart)
        assert before[-1] != after[-1], chart
    assert curves(page, "chart-temperature")[0] == end["chart-temperature"][0]

    # The error that the page works out is that of its chart.
    move_slider(page, 200)
    assert curves(page, "chart-temperature") == end["chart-temperature"]
    assert "static model 5.90 K" in page.find_element(By.ID, "episode-error").text
    # At the end every seed is there.
    seeds = "return document.querySelectorAll('#chart-temperature path.seed').length"
    assert page.execute_script(seeds) == 10

    # A choice changes curves, dots and tables.
    table = page.find_element(By.ID, "skill-table").text
    learning, over_time = curves(page, "chart-learning"), curves(page, "chart-D")
    choose(page, "scheme", "fed10")
    assert name(page) == "of ebm-v3-a2-fed10-td3-paper"
    assert curves(page, "chart-A")[-1] != end["chart-A"][-1]
    assert page.find_element(By.ID, "skill-table").text != table
    assert curves(page, "chart-learning") != learning
    assert curves(page, "chart-D")[-1] != over_time[-1]

    # Hovering gives figures.
    scroll_to(page, "chart-temperature")
    ActionChains(page).move_to_element(page.find_element(By.ID, "chart-temperature")).perform()
    wait_for_tooltip(page, "target", "°C")

    # So does a tap, which leaves them there.
    box = scroll_to(page, "chart-error")
    place = {"x": box["x"] + box["width"] / 2, "y": box["y"] + box["height"] / 2}
    page.execute_cdp_cmd("Emulation.setTouchEmulationEnabled", {"enabled": True})
    for kind, points in (("touchStart", [place]), ("touchEnd", [])):
        page.execute_cdp_cmd("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})
    told = wait_for_tooltip(page, "static model", " K")
    assert "target" not in told

    # A cell of the table of all cells is a way to it.
    page.execute_script("document.querySelector('#cell-table td button').click()")
    assert name(page) != "of ebm-v3-a2-fed10-td3-paper"


AXES = (
    "return [...document.querySelectorAll('#' + arguments[0] + ' svg > text')]"
    ".map((text) => text.textContent)"
)


def test_axes_are_the_same_for_all_cells(report):
    """Between cells of large errors and small ones, and between times; so two can be compared."""
    charts = ("temperature", "error", "A", "B", "longwave", "D", "a0", "a2", "skill", "learning")
    found = []
    with opened(report) as page:
        open_details(page)
        for scheme, step in (("nofed", 200), ("fed05", 1), ("fed05", 200)):
            choose(page, "scheme", scheme)
            move_slider(page, step)
            found.append([page.execute_script(AXES, f"chart-{chart}") for chart in charts])
    assert all(found[0])
    assert found[0] == found[1] == found[2]


def test_two_cells_and_the_address(report):
    """Two cells beside each other; the address holds them and the time, and a reload keeps it."""
    from selenium.webdriver.common.by import By

    with opened(report) as page:
        open_details(page)
        page.find_element(By.ID, "compare").click()
        choose(page, "algo", "td3", "choice-other")
        choose(page, "preset", "corrected", "choice-other")
        move_slider(page, 50)
        page.execute_script("document.getElementById('step').dispatchEvent(new Event('change'))")
        both = "of ebm-v3-a6-fed05-ddpg-paper and ebm-v3-a6-nofed-td3-corrected"
        assert name(page) == both
        assert len(curves(page, "chart-temperature")) == 5
        assert len(curves(page, "chart-learning")) == 2
        shown = curves(page, "chart-temperature")
        page.refresh()
        wait_for(page, lambda: page.execute_script("return document.body.dataset.ready"))
        assert name(page) == both
        assert curves(page, "chart-temperature") == shown
        assert "step 50 of" in page.find_element(By.ID, "step-output").text


def test_by_keyboard_alone(report):
    """A cell is chosen within ten tabs, what has the focus is seen, and figures can be read."""
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys

    with opened(report) as page:
        found = []
        for _ in range(10):
            ActionChains(page).send_keys(Keys.TAB).perform()
            focus = page.switch_to.active_element
            found.append(focus.get_attribute("name") or focus.get_attribute("id"))
            assert focus.value_of_css_property("outline-style") != "none", found[-1]
        assert {"env", "agents", "scheme", "algo", "preset", "play", "step"} <= set(found)

        # Rows of dots tell their figures, and the return key opens the cell.
        rows = page.find_element(By.CSS_SELECTOR, "#federation-figure .rows")
        scroll_to(page, "federation-figure")
        rows.send_keys(Keys.ARROW_DOWN, Keys.ARROW_DOWN)
        assert wait_for_tooltip(page, "ebm-v2-a2-fed05-ddpg", "optimal control")
        rows.send_keys(Keys.ENTER)
        wait_for(page, lambda: "ebm-v2-a2-fed05-ddpg" in name(page))


def test_every_figure_has_words(report):
    """Each drawing says what it shows to who cannot see it, with numbers."""
    with opened(report) as page:
        open_details(page)
        told = page.execute_script(
            "return [...document.querySelectorAll('figure')].map((figure) =>"
            " figure.querySelector('[role=img]')?.getAttribute('aria-label') ?? '')"
        )
        assert len(told) >= 16
        assert all(len(text) > 40 for text in told)


def test_files_to_take_away(report):
    """Every seed as CSV, all as JSON, and figures as drawings that need no style of the page."""
    with opened(report, first="window.saved = []; URL.createObjectURL = (blob) =>"
                " { window.saved.push(blob); return 'about:blank#'; };") as page:  # fmt: skip
        page.execute_script(
            "addEventListener('click', (e) => { if (e.target.download) e.preventDefault(); }, true)"
        )
        page.execute_script("HTMLAnchorElement.prototype.click = () => {}")
        page.execute_script(
            "document.querySelectorAll('[data-file], figure button.svg').forEach((b) => b.click())"
        )
        files = page.execute_async_script(
            "Promise.all(window.saved.map((blob) => blob.text())).then(arguments[0])"
        )
        drawings = [text for text in files if text.startswith("<svg")]
        (table,) = [text for text in files if text.startswith("cell,")]
        (everything,) = [text for text in files if text.startswith("{")]
        lines = table.splitlines()
        assert len(lines) - 1 == sum(len(c["numbers"]) for c in json.loads(everything)["cells"])
        assert len(drawings) >= 8
        assert not any("var(" in text or "class=" in text for text in drawings)


def test_claims_by_verdict(report):
    """Every claim is under exactly one verdict, is counted, and opens its evidence."""
    from selenium.webdriver.common.by import By

    with opened(report) as page:

        def shown():
            found = page.find_elements(By.CSS_SELECTOR, "#claim-list summary > span:first-child")
            return [statement.text for statement in found if statement.text]

        def press(what):
            show = "arguments[0].scrollIntoView({block: 'center', behavior: 'instant'})"
            page.execute_script(show, what)
            what.click()

        every = shown()
        assert len(every) == 48
        found = []
        every_label, *labels = page.find_elements(By.CSS_SELECTOR, "#claim-choice label")
        for label in labels:
            press(label)
            wait_for(page, lambda label=label: len(shown()) == int(label.text.split()[-1]))
            found += shown()
        assert sorted(found) == sorted(every)
        press(every_label)
        wait_for(page, lambda: shown() == every)

        # A sign and a word for each verdict, in every source of figures: no colour is needed.
        tiles = page.execute_script(
            "return [...document.querySelectorAll('#claim-list .verdict')].map((claim) =>"
            " [...claim.querySelectorAll('.tile')].map((tile) => tile.textContent))"
        )
        assert {len(row) for row in tiles} == {3}
        signs = {(tile[0], tile[1:]) for row in tiles for tile in row}
        assert len({sign for sign, _ in signs}) == len({word for _, word in signs}) == len(signs)
        press(page.find_element(By.CSS_SELECTOR, "#claim-list summary"))
        evidence = page.find_element(By.CSS_SELECTOR, "#claim-list details[open] dl").text
        assert "Mann–Whitney" in evidence


def test_a_cell_that_is_not_done_shows_nothing_of_another(of_two_cells):
    with opened(of_two_cells) as page:
        shown = "return [...document.querySelectorAll('#climate > .grid, #climate > details')]"
        shown += ".filter((part) => part.getClientRects().length).length"
        assert page.execute_script(shown) == 3
        choose(page, "scheme", "nofed")
        assert name(page) == ""
        assert page.execute_script(shown) == 0
        choose(page, "scheme", "fed05")
        assert page.execute_script(shown) == 3


def test_without_episodes_the_rest_is_there(of_two_cells):
    """In a browser that cannot decompress."""
    with opened(of_two_cells, first="delete window.DecompressionStream") as page:
        from selenium.webdriver.common.by import By

        assert "cannot unpack" in page.find_element(By.ID, "episode-error").text
        assert not page.find_element(By.ID, "play").is_enabled()
        page.execute_script("document.querySelectorAll('.more').forEach((p) => p.open = true)")
        wait_for(page, lambda: curves(page, "chart-learning"))
        before = curves(page, "chart-learning")
        assert "published" in page.find_element(By.ID, "skill-table").text
        choose(page, "env", "ebm-v1")
        assert curves(page, "chart-learning") != before


def test_figures_by_keyboard(of_two_cells):
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys

    with opened(of_two_cells) as page:
        scroll_to(page, "chart-temperature")
        tooltip = page.find_element(By.ID, "tooltip")
        press = page.find_element(By.ID, "chart-temperature").send_keys
        for key, told in (
            (Keys.ARROW_RIGHT, "89.1°S"),
            (Keys.ARROW_RIGHT, "87.2°S"),
            (Keys.END, "89.1°N"),
        ):
            press(key)
            assert wait_for_tooltip(page, told, "static model").startswith(told)
        press(Keys.ESCAPE)
        wait_for(page, lambda: not tooltip.is_displayed())
        press(Keys.HOME)
        wait_for_tooltip(page, "89.1°S")
        page.execute_script("scrollBy({top: 200, behavior: 'instant'})")
        wait_for(page, lambda: not tooltip.is_displayed())


def test_play_goes_through_the_episode(page):
    move_slider(page, 190)
    page.execute_script("document.getElementById('play').click()")
    wait_for(
        page,
        lambda: page.execute_script(
            "return document.getElementById('step').value === '200'"
            " && document.getElementById('play').textContent === '▶'"
        ),
    )
