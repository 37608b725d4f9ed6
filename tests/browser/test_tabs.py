"""The tabs of a collection in a browser: drawn, chosen, saved, read with the keyboard."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select

from .chromium import NARROW, WIDE, Browser

ROWS = [
    "Local, nobody trusted",
    *("Shuffled, the same reports", "Shuffled, the same guarantee"),
    *("Central, a trusted curator", "Central, Gaussian noise"),
]
FETCH = "return fetch(document.querySelector('.files a').href).then((got) => got.text())"
STROKE = "return getComputedStyle(document.querySelector('#scaling .line')).stroke"
ROW = 50  # pixels: a value and its figures are beside each other, not in three lines
A4 = (718, 1047)  # pixels within margins of a centimetre
CUT = """return [...document.querySelectorAll('main :is(table, section, figure, p, pre)')]
  .filter((each) => each.getBoundingClientRect().right > window.innerWidth + 1
    || (each.tagName === 'PRE' && each.scrollWidth > each.clientWidth + 1)
    || (each.closest('.scroll') && each.scrollWidth > each.closest('.scroll').clientWidth + 1))
  .map((each) => `${each.tagName} ${each.textContent.trim().slice(0, 40)}`)"""


@pytest.mark.parametrize("name", ["theme", "country", "word"])
def test_a_printed_report_is_not_cut(browser: Browser, name: str) -> None:
    """Values over time are a table with a column for each; on a page that scrolls, it is wider."""
    browser.enter()
    browser.expects("favicon.ico")
    browser.driver.get(f"{browser.site.base}/collections/{name}/report")  # it has no script

    assert browser.all("details:not([open])") == []  # nobody opens them on paper
    browser.size(A4)
    cut_on_a_screen = browser.run(CUT)
    browser.command("Emulation.setEmulatedMedia", media="print")

    assert browser.run(CUT) == []
    assert browser.all(".dots tbody tr")[0].rect["height"] < ROW
    assert cut_on_a_screen or name != "theme", "the check finds what is cut"
    browser.command("Emulation.setEmulatedMedia", media="")


def test_estimates_are_drawn_and_options_and_dates_change_the_address_and_the_drawing(
    browser: Browser,
) -> None:
    """Without a script: fake reports, too, are shown by a box alone."""
    browser.enter()
    browser.open("/collections/theme")

    assert len(browser.all("section.figures .dots .whisker")) == 3
    assert len(browser.all("section.figures .multiples .area")) == 3
    assert browser.run("return document.scripts.length") == 3  # theme, menu, read-out
    assert not browser.all("rect.fakes")[0].is_displayed()
    browser.find("section.figures .show-fakes").click()
    assert browser.all("rect.fakes")[0].is_displayed()
    assert [each.is_displayed() for each in browser.all("section.figures td.fakes")] == [True] * 3

    browser.find("details.view-options > summary").click()
    (consistent,) = [each for each in browser.all(".choice a") if each.text == "consistent"]
    browser.follow(consistent)
    assert browser.path == "/collections/theme?view=consistent"
    assert "consistent" in browser.texts(".view-options .choice a[aria-current]")
    browser.run("document.getElementById('from').value = '2026-09-01'")
    browser.follow(".fields button")
    assert "view=consistent" in browser.path
    assert "1 Sep to 31 Dec 2026" in browser.text(".verdict")
    assert browser.all(".verdict time")[0].get_attribute("datetime") == "2026-09-01"
    rows = csv.DictReader(browser.run(FETCH).splitlines())
    shares = sorted(
        (f"{float(row['figure']):.2%}" for row in rows), key=lambda each: -float(each[:-1])
    )
    assert browser.texts("section.figures .dots td:nth-child(3)") == shares
    assert browser.audit() == []


def test_a_menu_and_the_active_tab_are_in_sight_at_any_width(browser: Browser) -> None:
    browser.size(NARROW)
    browser.enter()
    browser.open("/collections/theme/definition")
    tab = browser.find(".tabs [aria-current]").rect

    assert tab["x"] >= 0
    assert tab["x"] + tab["width"] <= NARROW[0]
    assert not browser.find(".menu nav").is_displayed()
    browser.size(WIDE)
    browser.wait_for(browser.find(".menu nav").is_displayed)


def test_a_chart_is_saved_as_a_picture_and_its_table_opens_with_the_keyboard(
    browser: Browser, tmp_path: Path
) -> None:
    browser.enter()
    browser.open("/collections/plan/budget")
    browser.command("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(tmp_path))
    button = browser.all("[data-save]")[0]
    picture = tmp_path / f"veilcount-{button.get_attribute('data-save')}.png"
    button.click()
    browser.wait_for(picture.exists)
    browser.all("figure.chart summary")[0].send_keys(Keys.ENTER)

    assert picture.read_bytes().startswith(b"\x89PNG")
    assert browser.all("figure.chart table")[0].is_displayed()


def test_segments_days_and_definitions_are_compared_with_the_keyboard(browser: Browser) -> None:
    browser.enter()
    browser.open("/collections/theme/compare?from=2026-11-01&to=2026-11-30")

    assert " of 100 " in browser.text(".verdict .headline")
    assert len(browser.all("#differences .mark .whisker")) == 3
    assert [text.split()[0] for text in browser.texts("tbody th")] == ["light", "dark", "system"]
    assert all(" to " in text for text in browser.texts("tbody td:nth-child(5)"))
    Select(browser.find("#a")).select_by_value("arm:B")
    Select(browser.find("#b")).select_by_value("arm:A")
    browser.await_page(lambda: browser.find("#values").send_keys("light,dark", Keys.ENTER))
    assert "a=arm%3AB" in browser.path
    assert [text.split()[0] for text in browser.texts("tbody th")] == ["light", "dark"]
    assert "B: arm A" in browser.text(".facts")

    browser.follow(browser.all(".choice a")[1])
    assert browser.text(".choice a[aria-current]") == "Ranges of days"
    assert "1 to 30 Nov 2026" in browser.text()
    assert browser.audit() == []
    browser.follow(browser.all(".choice a")[2])
    assert browser.text(".choice a[aria-current]") == "Definitions"
    assert "under definition" in browser.text(".verdict")


def test_thirty_names_fit_on_a_phone(browser: Browser) -> None:
    browser.size(NARROW)
    browser.enter()
    browser.open("/collections/word/compare")

    assert browser.fits()
    assert len(browser.all("#differences .mark .whisker")) == 30
    assert "The first 30 values are drawn; the table has all." in browser.text("figcaption")


def test_rows_and_lines_of_the_contrast_are_shown_and_n_is_marked_on_the_logarithmic_axis(
    browser: Browser,
) -> None:
    """n is in the middle of five sizes, two decades either side; lines follow the theme at once."""
    browser.enter()
    browser.open("/collections/theme/contrast")
    mark, line = (browser.find(f"#scaling {each}").rect for each in (".rule", ".area svg"))

    over_time = [ROWS[0], *ROWS[-2:]]
    assert browser.texts(".panel tbody th") == [*ROWS, *over_time]
    assert len(browser.all("#scaling .line")) == 3
    assert browser.text("#scaling .rule + text").startswith("n = ")
    assert mark["x"] == pytest.approx(line["x"] + line["width"] / 2, abs=8)
    assert browser.audit() == []
    browser.theme("light")
    browser.size(WIDE)
    browser.type("#n", "500")
    browser.follow("form[method=get] button")
    assert browser.path.endswith("n=500")
    assert "n = 500: as " in browser.text()
    light = browser.run(STROKE)
    browser.find("#theme").click()
    browser.wait(f"{STROKE} !== {light!r}")
    assert browser.run("return document.documentElement.dataset.theme") == "dark"
