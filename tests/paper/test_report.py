"""The report in a real browser."""

import re
import shutil
from contextlib import contextmanager

import pytest

from fedrain.cli import main
from fedrain.paper import load_results, write_report
from fedrain.plotting import style
from tests.paper import RESULTS

WIDTHS = {"laptop": (1366, 900), "phone": (390, 844)}
FLAGS = (
    "--headless=new --no-sandbox --disable-gpu --disable-quic --no-first-run "
    "--disable-background-networking --disable-component-update --disable-sync"
)


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    path = tmp_path_factory.mktemp("report") / "report.html"
    assert main(["benchmark", "report", "--results", str(RESULTS), "--out", str(path)]) == 0
    return path


def test_needs_nothing_else(report):
    text = report.read_text("utf-8")
    assert report.stat().st_size < 8e6
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
    for key in ("target", "static", "limit", "model", "published", "ddpg", "td3", "tqc"):
        assert f"--{key}-colour: {style(key).colour};" in text


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


@contextmanager
def opened(report, width=1366, height=900, first=""):
    """The page in a browser that has run ``first``, and whose console must stay empty."""
    driver = shutil.which("chromedriver")
    if driver is None or shutil.which("chromium") is None:
        pytest.skip("needs chromium and chromium-driver")
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service
    from selenium.webdriver.support.ui import WebDriverWait

    options = webdriver.ChromeOptions()
    for flag in FLAGS.split():
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    browser = webdriver.Chrome(options=options, service=Service(driver))
    screen = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)
    browser.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": first})
    try:
        browser.get(report.as_uri())
        WebDriverWait(browser, 30).until(
            lambda b: b.execute_script("return document.body.dataset.ready")
        )
        yield browser
        assert browser.get_log("browser") == []
    finally:
        browser.quit()


def curves(page, chart):
    script = "return [...document.querySelectorAll('#' + arguments[0] + ' polyline')]"
    return page.execute_script(f"{script}.map((line) => line.getAttribute('points'))", chart)


def move_slider(page, step):
    page.execute_script(
        "const slider = document.getElementById('step'); slider.value = arguments[0];"
        "slider.dispatchEvent(new Event('input'));",
        step,
    )


def choose(page, name, value):
    page.execute_script(
        'document.querySelector(`#choice input[name=${arguments[0]}][value="${arguments[1]}"]`)'
        ".click()",
        name,
        value,
    )


def scroll_to(page, chart):
    """Where it is on the screen, once it no longer moves.

    The browser tells the page that it has scrolled a frame later, and the page then hides its
    tooltip: a pointer that moves before that would be answered for an instant only.
    """
    return page.execute_async_script(
        "const [chart, done] = arguments, box = document.getElementById(chart);"
        "box.scrollIntoView({block: 'center', behavior: 'instant'});"
        "const told = () => done(box.getBoundingClientRect());"
        "requestAnimationFrame(() => requestAnimationFrame(told))",
        chart,
    )


def wait_for(page, condition):
    """What the browser does on a pointer or a key is not done when the event has been sent."""
    from selenium.webdriver.support.ui import WebDriverWait

    return WebDriverWait(page, 20).until(lambda _: condition())


def wait_for_tooltip(page, *parts):
    from selenium.webdriver.common.by import By

    tooltip = page.find_element(By.ID, "tooltip")
    wait_for(page, lambda: all(part in tooltip.text for part in parts))
    return tooltip.text


def names(page):
    return page.execute_script(
        "return [...document.querySelectorAll('.cell-name')].map((e) => e.textContent)"
    )


def test_slider_choices_and_figures(page):
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.by import By

    # The page is as wide as the screen, no wider.
    assert page.execute_script("return document.documentElement.scrollWidth <= innerWidth")

    # The slider moves what moves, and not the target.
    choose(page, "algo", "td3")
    choose(page, "preset", "paper")
    choose(page, "agents", 2)
    assert set(names(page)) == {"ebm-v3-a2-fed05-td3-paper"}
    end = {c: curves(page, c) for c in ("chart-temperature", "chart-error", "chart-A", "chart-B")}
    assert [len(lines) for lines in end.values()] == [4, 3, 3, 3]
    move_slider(page, 20)
    assert "step 20 of 200" in page.find_element(By.ID, "step-output").text
    for chart, before in end.items():
        after = curves(page, chart)
        assert before[-1] != after[-1], chart
    assert curves(page, "chart-temperature")[0] == end["chart-temperature"][0]

    # The error that the page works out is that of its chart.
    move_slider(page, 200)
    assert curves(page, "chart-temperature") == end["chart-temperature"]
    assert "static model 5.90 K" in page.find_element(By.ID, "episode-error").text

    # A choice changes curves, bars and tables.
    bars = page.find_element(By.ID, "skill-table").text
    learning = curves(page, "chart-learning")
    choose(page, "scheme", "fed10")
    assert set(names(page)) == {"ebm-v3-a2-fed10-td3-paper"}
    assert curves(page, "chart-A")[-1] != end["chart-A"][-1]
    assert page.find_element(By.ID, "skill-table").text != bars
    assert curves(page, "chart-learning") != learning

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
    assert set(names(page)) != {"ebm-v3-a2-fed10-td3-paper"}


def test_claims_by_verdict(report):
    """Every claim is under exactly one verdict, and the labels count them."""
    from selenium.webdriver.common.by import By

    with opened(report) as page:

        def shown():
            found = page.find_elements(By.CSS_SELECTOR, "#claim-list li > p")
            return [statement.text for statement in found if statement.text]

        every = shown()
        found = []
        every_label, *labels = page.find_elements(By.CSS_SELECTOR, "#claim-choice label")
        for label in labels:
            label.click()
            wait_for(page, lambda label=label: len(shown()) == int(label.text.split()[-1]))
            found += shown()
        assert sorted(found) == sorted(every)
        every_label.click()
        wait_for(page, lambda: shown() == every)


def test_a_cell_that_is_not_done_shows_nothing_of_another(of_two_cells):
    with opened(of_two_cells) as page:
        shown = "return [...document.querySelectorAll('#episode > :not(h2)')]"
        shown += ".filter((part) => part.getClientRects().length).length"
        assert page.execute_script(shown) > 3
        choose(page, "scheme", "nofed")
        assert set(names(page)) == {"a cell that is not finished"}
        assert page.execute_script(shown) == 0
        choose(page, "scheme", "fed05")
        assert page.execute_script(shown) > 3


def test_without_episodes_the_rest_is_there(of_two_cells):
    """In a browser that cannot decompress."""
    with opened(of_two_cells, first="delete window.DecompressionStream") as page:
        from selenium.webdriver.common.by import By

        assert "cannot unpack" in page.find_element(By.ID, "episode-error").text
        assert not page.find_element(By.ID, "play").is_enabled()
        before = curves(page, "chart-learning")
        assert before
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
