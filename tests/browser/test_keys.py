"""The page of keys in a real browser: made, copied, taken back."""

from __future__ import annotations

import pytest

from tests.browser.chromium import Browser
from veilcount_aggregator.auth.api_keys import Role, load_api_keys


@pytest.fixture
def admin(guest: Browser) -> Browser:
    """An admin who looks at the keys of a house of their own."""
    guest.enter(Role.ADMIN)
    guest.open("/keys")
    return guest


def test_a_key_is_made_and_copied_as_it_stands(admin: Browser) -> None:
    _allow(admin, "granted")
    _make(admin)
    admin.find("[data-copy]").click()
    admin.wait("return document.querySelector('[data-copy]').textContent === 'Copied'")
    shown = admin.find("#secret").get_attribute("value")

    assert str(shown).startswith("veilcount_device_")
    copied = admin.driver.execute_async_script("navigator.clipboard.readText().then(arguments[0])")
    assert copied == shown
    assert admin.house.deployment.aggregator.known().api_keys.find(str(shown))


def test_where_the_browser_forbids_to_copy_the_key_is_selected(admin: Browser) -> None:
    _allow(admin, "denied")
    _make(admin)
    admin.find("[data-copy]").click()
    admin.wait("return document.querySelector('[data-copy]').textContent.startsWith('Selected')")

    assert admin.run("return getSelection().toString()") == admin.find("#secret").get_attribute(
        "value"
    )


def test_a_key_is_taken_back_only_after_a_second_look(admin: Browser) -> None:
    _make(admin)
    admin.open("/keys")

    assert not admin.find(".confirm button").is_displayed()
    admin.find(".confirm summary").click()
    admin.follow(".confirm button")
    (key,) = load_api_keys(admin.house.deployment.aggregator.store).keys.values()
    assert key.revoked == "2026-12-03"
    assert "revoked 2026-12-03" in admin.text(".rows")


def _make(admin: Browser) -> None:
    admin.find("input[value=device]").click()
    admin.find("#label").send_keys("the editor")
    admin.follow("form .fields button")


def _allow(admin: Browser, setting: str) -> None:
    for name in ("clipboard-read", "clipboard-write"):
        permission = {"name": name}
        admin.tell("Browser.setPermission", permission=permission, setting=setting)
