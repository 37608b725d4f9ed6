"""The estimates tab in a browser: drawn, chosen, saved, read with the keyboard."""

from __future__ import annotations

import csv
from pathlib import Path

from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import WebDriverWait

from tests.aggregator.queries.simulated_reports import counted, send
from tests.browser.browser_server import Site
from tests.browser.chromium import NARROW, Browser

ODD = """
app = "acme-editor"

[odd]
question = "Which name is the oddest?"
values = ["<b>bold</b> & co", "A name that goes on and on, much further than a phone has room", "c"]
epsilon = 4
unit = "month"
from = 2026-12-01
until = 2027-12-01
"""


def test_bars_have_whiskers_lines_have_bands_and_points_have_texts(browser: Browser) -> None:
    browser.enter()
    browser.open("/collections/theme")
    bars, lines = browser.all("figure.chart .plot")[:2]

    assert len(bars.find_elements("css selector", ".errorbar")) == 3
    assert len(lines.find_elements("css selector", ".scatterlayer .fills path")) >= 3
    assert browser.all(".wait") == []
    browser.run(
        "Plotly.Fx.hover(document.querySelector('.plot'), [{curveNumber: 1, pointNumber: 1}])"
    )
    browser.wait("return document.querySelector('.plot .hoverlayer text')")
    assert browser.text(".plot .hoverlayer text").startswith("dark: 50.37% (49.74% to 51.00% at")


def test_options_and_dates_change_the_address_and_the_drawing(browser: Browser) -> None:
    browser.enter()
    browser.open("/collections/theme")
    browser.find("details.view-options > summary").click()
    (consistent,) = [each for each in browser.all(".choice a") if each.text == "consistent"]
    browser.follow(consistent)

    assert browser.path == "/collections/theme?view=consistent"
    assert browser.texts(".choice a[aria-current]")[0] == "consistent"
    assert browser.run("return document.querySelector('.plot').data[1].x.every((x) => x >= 0)")
    browser.run("document.getElementById('from').value = '2026-09-01'")
    browser.follow(".fields button")
    assert "view=consistent" in browser.path
    assert "UTC days 2026-09-01 to 2026-12-31" in browser.text(".verdict")
    text = browser.run(
        "return fetch(document.querySelector('.files a').href).then((got) => got.text())"
    )
    shown = browser.run("return document.querySelector('.plot').data[1].x")
    assert [float(row["frequency"]) for row in csv.DictReader(text.splitlines())] == shown


def test_a_chart_is_saved_as_a_picture_and_its_table_opens_with_the_keyboard(
    browser: Browser, tmp_path: Path
) -> None:
    browser.enter()
    browser.open("/collections/plan")
    browser.command("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(tmp_path))
    button = browser.all("[data-save]")[0]
    picture = tmp_path / f"veilcount-{button.get_attribute('data-save')}.png"
    button.click()
    WebDriverWait(browser.driver, 60, 0.05).until(lambda _: picture.exists())
    browser.all("figure.chart summary")[0].send_keys(Keys.ENTER)

    assert picture.read_bytes().startswith(b"\x89PNG")
    assert "light · paid" in browser.all("figure.chart table")[0].text


def test_an_odd_name_is_escaped_and_a_long_one_is_cut_on_a_phone(
    own_browser: Browser, own_site: Site
) -> None:
    own_site.deployment.push(ODD)
    counted(send(own_site.deployment, "odd", [300, 200, 100]))
    own_browser.size(NARROW)
    own_browser.enter()
    own_browser.open("/collections/odd")

    assert own_browser.texts(".plot .yaxislayer-above text") == [
        "<b>bold</b> & co",
        "A name that goe…",
        "c",
    ]
    assert own_browser.fits()
