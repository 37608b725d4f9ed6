"""The keys page in a browser: created, copied, revoked."""

from __future__ import annotations

import pytest

from tests.browser.chromium import Browser
from veilcount_aggregator.auth.api_keys import Role, load_api_keys


@pytest.fixture
def admin(own_browser: Browser) -> Browser:
    """An admin at the keys page of an own site."""
    own_browser.enter(Role.ADMIN)
    own_browser.open("/keys")
    return own_browser


def create_key(admin: Browser) -> str:
    """Create a device key; return it."""
    admin.find("input[value=device]").click()
    admin.find("#label").send_keys("the editor")
    admin.follow("form .fields button")
    return str(admin.find("#secret").get_attribute("value"))


def allow_clipboard(admin: Browser, setting: str) -> None:
    """Allow or deny the clipboard."""
    for name in ("clipboard-read", "clipboard-write"):
        admin.command("Browser.setPermission", permission={"name": name}, setting=setting)


def test_a_new_key_is_copied_and_selected_where_copying_is_denied(admin: Browser) -> None:
    allow_clipboard(admin, "granted")
    secret = create_key(admin)
    admin.find("[data-copy]").click()
    admin.wait("return document.querySelector('[data-copy]').textContent === 'Copied'")
    copied = admin.driver.execute_async_script("navigator.clipboard.readText().then(arguments[0])")

    assert secret.startswith("veilcount_device_")
    assert copied == secret
    assert admin.site.deployment.aggregator.known().api_keys.find(secret)
    allow_clipboard(admin, "denied")
    admin.find("[data-copy]").click()
    admin.wait("return document.querySelector('[data-copy]').textContent.startsWith('Selected')")
    assert admin.run("return getSelection().toString()") == secret


def test_a_key_is_revoked_only_after_a_confirmation(admin: Browser) -> None:
    create_key(admin)
    admin.open("/keys")

    assert not admin.find(".confirm button").is_displayed()
    admin.find(".confirm summary").click()
    admin.follow(".confirm button")
    (key,) = load_api_keys(admin.site.deployment.aggregator.store).keys.values()
    assert key.revoked == "2026-12-03"
    assert "revoked 2026-12-03" in admin.text(".rows")
