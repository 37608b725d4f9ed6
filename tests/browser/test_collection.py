"""A collection's page in a real browser: drawn, chosen, saved, read without a mouse."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import WebDriverWait

from tests.aggregator.queries.simulated_reports import counted, send
from tests.browser.browser_server import House
from tests.browser.chromium import NARROW, Browser

OVERFLOW = "return document.documentElement.scrollWidth - document.documentElement.clientWidth"
DRAWN = "return document.querySelectorAll('.plot .bars path, .plot .lines path').length"
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


def test_bars_with_whiskers_and_lines_with_bands_are_drawn(browser: Browser) -> None:
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


def test_a_choice_is_an_address_and_another_drawing(browser: Browser) -> None:
    browser.enter()
    browser.open("/collections/theme")
    browser.find("details.view-options > summary").click()
    (consistent,) = [each for each in browser.all(".choice a") if each.text == "consistent"]
    browser.follow(consistent)

    assert browser.path == "/collections/theme?view=consistent"
    assert browser.texts(".choice a[aria-current]")[0] == "consistent"
    assert browser.run("return document.querySelector('.plot').data[1].x.every((x) => x >= 0)")


def test_dates_are_asked_for_with_the_form(browser: Browser) -> None:
    browser.enter()
    browser.open("/collections/theme?level=0.9")
    browser.run("document.getElementById('from').value = '2026-09-01'")
    browser.follow(".fields button")

    assert "level=0.9" in browser.path
    assert "UTC days 2026-09-01 to 2026-12-31" in browser.text(".verdict")


def test_a_chart_is_saved_as_a_picture(browser: Browser, tmp_path: Path) -> None:
    browser.enter()
    browser.open("/collections/dark")
    browser.tell("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(tmp_path))
    name = browser.find("[data-save]").get_attribute("data-save")
    browser.find("[data-save]").click()
    picture = tmp_path / f"veilcount-{name}.png"
    WebDriverWait(browser.driver, 20, 0.05).until(lambda _: picture.exists())

    assert picture.read_bytes().startswith(b"\x89PNG")


def test_a_file_has_what_is_shown(browser: Browser) -> None:
    browser.enter()
    browser.open("/collections/theme?segment=arm:A")
    text = browser.run(
        "return fetch(document.querySelector('.files a').href).then((got) => got.text())"
    )
    shown = browser.run("return document.querySelector('.plot').data[1].x")

    assert [float(row["frequency"]) for row in csv.DictReader(text.splitlines())] == shown


def test_the_table_behind_a_chart_opens_with_the_keyboard(browser: Browser) -> None:
    browser.enter()
    browser.open("/collections/plan")
    browser.find("figure.chart summary").send_keys(Keys.ENTER)

    assert "light · paid" in browser.text("figure.chart table")


@pytest.mark.parametrize("name", ["word", "latency", "visits"])
def test_a_phone_shows_all_of_it(browser: Browser, name: str) -> None:
    browser.size(NARROW)
    browser.theme("dark")
    browser.enter()
    browser.open(f"/collections/{name}")

    assert browser.run(OVERFLOW) == 0
    assert bool(browser.run(DRAWN)) == (name != "visits")


def test_an_odd_name_is_shown_as_it_is_and_cut_where_there_is_no_room(
    guest: Browser, own_house: House
) -> None:
    own_house.deployment.push(ODD)
    counted(send(own_house.deployment, "odd", [300, 200, 100]))
    guest.size(NARROW)
    guest.enter()
    guest.open("/collections/odd")

    assert guest.texts(".plot .yaxislayer-above text") == [
        "<b>bold</b> & co",
        "A name that goe…",
        "c",
    ]
    assert guest.run(OVERFLOW) == 0
