"""The way in and out, in a real browser: what it keeps, shows and sends along."""

from __future__ import annotations

from tests.browser.chromium import Browser
from veilcount_aggregator.auth.api_keys import Role


def test_a_links_secret_is_in_no_address_that_is_asked_for_or_kept(browser: Browser) -> None:
    link = browser.house.link(Role.ADMIN)
    secret = link.partition("#")[2]
    browser.driver.get(link)
    browser.wait("return location.pathname === '/'")
    browser.wait_until_ready()

    assert browser.path == "/"
    assert "admin" in browser.text(".self")
    assert not any(secret in url for url in browser.asked() if "#" not in url)
    assert secret not in browser.run("return document.referrer")
    browser.driver.back()
    assert secret not in browser.driver.current_url


def test_no_script_can_read_the_cookie(browser: Browser) -> None:
    browser.enter()
    browser.open("/")

    assert browser.run("return document.cookie") == ""


def test_a_key_leads_to_the_page_that_was_wanted(browser: Browser) -> None:
    key = browser.house.deployment.key(Role.ANALYST)
    browser.open("/operations?collection=opened")
    browser.find("#key").send_keys(key)
    browser.follow("form button.main")

    assert browser.path == "/operations?collection=opened"
    assert browser.text("h1") == "Operations"


def test_a_wrong_key_is_told_where_it_was_typed(browser: Browser) -> None:
    browser.expects("401")
    browser.open("/login")

    assert browser.run("return document.activeElement.id") == "key"
    browser.find("#key").send_keys("veilcount_admin_nothing")
    browser.follow("form button.main")
    assert "Unknown or revoked key" in browser.text("[role=alert]:not([hidden])")
    assert browser.find("#key").get_attribute("value") == ""


def test_after_the_log_out_nothing_is_left_to_go_back_to(browser: Browser) -> None:
    browser.house.cookies.pop(Role.ANALYST, None)  # this log-in ends here
    browser.enter()
    browser.house.cookies.pop(Role.ANALYST)
    browser.open("/operations")
    browser.follow(".self form button")

    assert browser.path == "/login"
    browser.driver.back()
    browser.wait("return location.pathname === '/login'")
    browser.wait_until_ready()


def test_an_analyst_is_refused_in_words(browser: Browser) -> None:
    browser.expects("403")
    browser.enter()
    browser.open("/keys")

    assert "this page is for keys of role admin" in browser.text()
    assert "Keys" not in browser.texts(".menu nav a")
    browser.follow("main .button")
    assert browser.path == "/"


def test_the_theme_is_the_systems_until_one_is_chosen(browser: Browser) -> None:
    browser.enter()
    browser.open("/")
    grounds = [_ground(browser)]
    browser.theme("dark")
    grounds.append(_ground(browser))
    browser.find("#theme").click()
    grounds.append(_ground(browser))
    browser.open("/operations")
    grounds.append(_ground(browser))

    light, dark, chosen, kept = grounds
    assert light != dark
    assert chosen == kept == light
    assert browser.find("#theme").get_attribute("aria-pressed") == "false"


def _ground(browser: Browser) -> str:
    return str(browser.run("return getComputedStyle(document.body).backgroundColor"))
