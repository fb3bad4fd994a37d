"""The report in Chromium: opening it, and what a person does with it."""

import shutil
from contextlib import contextmanager

import pytest

FLAGS = (
    "--headless=new --no-sandbox --disable-gpu --disable-quic --no-first-run "
    "--disable-background-networking --disable-component-update --disable-sync"
)


def new_browser():
    """Chromium without a screen, its console kept; where there is none, the test is skipped."""
    driver = shutil.which("chromedriver")
    if driver is None or shutil.which("chromium") is None:
        pytest.skip("needs chromium and chromium-driver")
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    for flag in FLAGS.split():
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    return webdriver.Chrome(options=options, service=Service(driver))


@contextmanager
def opened(report, width=1366, height=900, first=""):
    """The page in a browser that has run ``first``, and whose console must stay empty."""
    browser = new_browser()
    from selenium.webdriver.support.ui import WebDriverWait

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


def choose(page, name, value, where="choice"):
    page.execute_script(
        "const select = document.querySelector(`#${arguments[2]} select[name=${arguments[0]}]`);"
        "select.value = arguments[1]; select.dispatchEvent(new Event('change'));",
        name,
        str(value),
        where,
    )


def open_details(page):
    """Parameters, skill and learning curve, which are folded away at first."""
    page.execute_script("document.querySelectorAll('.more').forEach((part) => part.open = true)")
    wait_for(page, lambda: curves(page, "chart-learning") and curves(page, "chart-A"))


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


def name(page):
    """Of the cells that are shown."""
    return page.execute_script("return document.querySelector('.now').textContent")
