"""Log-in and log-out in a browser: what it keeps, shows and sends."""

from __future__ import annotations

from veilcount_aggregator.records.api_keys import Role

from .chromium import Browser


def test_the_secret_of_a_link_is_in_no_requested_or_kept_address(browser: Browser) -> None:
    link = browser.site.link(Role.ADMIN)
    secret = link.partition("#")[2]
    browser.driver.get(link)
    browser.wait("return location.pathname === '/'")
    browser.wait_until_ready()

    assert browser.path == "/"
    assert "admin" in browser.text(".self")
    assert not any(secret in url for url in browser.requested() if "#" not in url)
    assert secret not in browser.run("return document.referrer")
    assert browser.run("return document.cookie") == ""  # no script can read it
    browser.driver.back()
    assert secret not in browser.driver.current_url


def test_a_wrong_key_is_refused_at_its_field_and_a_right_one_leads_to_the_requested_page(
    browser: Browser,
) -> None:
    browser.expects("401")
    browser.open("/operations?collection=opened")

    assert browser.run("return document.activeElement.id") == "key"
    browser.find("#key").send_keys("veilcount_admin_nothing")
    browser.follow("form button.main")
    assert "Unknown or revoked key" in browser.text("[role=alert]:not([hidden])")
    assert browser.find("#key").get_attribute("value") == ""
    browser.find("#key").send_keys(browser.site.deployment.key(Role.ANALYST))
    browser.follow("form button.main")
    assert browser.path == "/operations?collection=opened"
    assert browser.text("h1") == "Operations"


def test_after_a_log_out_going_back_shows_no_page(browser: Browser) -> None:
    browser.enter()
    browser.open("/operations")
    browser.follow(".self form button")

    assert browser.path == "/login"
    browser.driver.back()
    browser.wait("return location.pathname === '/login'")
    browser.wait_until_ready()


def test_the_theme_is_the_systems_until_one_is_chosen(browser: Browser) -> None:
    background = "return getComputedStyle(document.body).backgroundColor"
    browser.enter()
    browser.open("/plan")
    light = browser.run(background)
    browser.theme("dark")
    dark = browser.run(background)
    browser.find("#theme").click()
    chosen = browser.run(background)
    browser.open("/plan")

    assert light != dark
    assert chosen == browser.run(background) == light
    assert browser.find("#theme").get_attribute("aria-pressed") == "false"
