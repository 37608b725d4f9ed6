"""What an admin or an analyst changes in a browser, each on a site of its own."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from veilcount_aggregator.records.api_keys import Role, load_api_keys

from ..aggregator.queries.simulated_reports import counted, send
from ..aggregator.web.api.deployment_fixtures import CENTRAL
from .chromium import NARROW, Browser

FILE = """
app = "acme-editor"

[word]
question = "Which word is looked up first?"
values_file = "lists/word.txt"
epsilon = 4
unit = "month"
from = 2026-12-01
until = 2027-04-01
"""
LONG = "A name that goes on and on, much further than a phone has room"
ODD = FILE.replace("word", "odd").replace(
    'values_file = "lists/odd.txt"', f'values = ["<b>bold</b> & co", "{LONG}", "c"]'
)
PAGES = CENTRAL.replace("visits", "pages").replace("boolean = true", "range = [0, 5]")


def test_files_are_chosen_previewed_pushed_and_closed(own_browser: Browser, tmp_path: Path) -> None:
    """An error keeps the typed text."""
    file, words = tmp_path / "collections.toml", tmp_path / "word.txt"
    file.write_text(FILE)
    words.write_text("\n".join(f"word-{place}" for place in range(500)))
    own_browser.expects("422")
    own_browser.enter(Role.ADMIN)
    own_browser.open("/definitions")

    assert "No definitions yet" in own_browser.text()
    own_browser.run("document.getElementById('text').value = arguments[0]", FILE)
    own_browser.follow("#preview")
    assert "values_file" in own_browser.text("[role=alert]")
    assert own_browser.find("#text").get_attribute("value") == FILE
    own_browser.find("#file").send_keys(str(file))
    own_browser.find("#lists").send_keys(str(words))
    own_browser.follow("#preview")
    assert "Which word is looked up first?" in own_browser.texts("h2")
    assert "A new collection." in own_browser.text()
    own_browser.follow("#push")
    assert own_browser.text("[role=status]").startswith("Pushed: word.")
    assert own_browser.site.deployment.series("word").collection.inputs == 500
    assert own_browser.audit() == []  # all details are open, the confirmation too
    own_browser.follow(".confirm button")
    assert "word is closed" in own_browser.text("[role=status]")
    assert own_browser.site.deployment.series("word").closed


def test_a_new_key_is_copied_and_revoked_only_after_a_confirmation(own_browser: Browser) -> None:
    own_browser.enter(Role.ADMIN)
    own_browser.open("/keys")
    own_browser.find("input[value=device]").click()
    own_browser.find("input[name=closes]").click()
    own_browser.find("#label").send_keys("the editor")
    own_browser.follow("form .fields button")
    secret = str(own_browser.find("#secret").get_attribute("value"))
    button = own_browser.copy("granted")
    copied = own_browser.driver.execute_async_script(
        "navigator.clipboard.readText().then(arguments[0])"
    )
    store = own_browser.site.deployment.aggregator.store

    assert secret.startswith("veilcount_device_")
    assert (button, copied) == ("Copied", secret)
    assert own_browser.site.deployment.aggregator.known().api_keys.find(secret)
    own_browser.open("/keys")
    assert own_browser.audit() == []
    own_browser.open("/keys")
    assert not own_browser.find(".confirm button").is_displayed()
    own_browser.find(".confirm summary").click()
    own_browser.follow(".confirm button")
    assert [key.revoked for key in load_api_keys(store).keys.values()] == ["2026-12-03"]
    assert "revoked 2026-12-03" in own_browser.text(".rows")


def test_a_release_is_dry_run_charged_drawn_and_listed(own_browser: Browser) -> None:
    """A local collection links to its estimates instead; its odd names are escaped, or cut."""
    made, here = own_browser.site.deployment, "/collections/pages/releases"
    made.push(PAGES + ODD.partition("\n\n")[2])
    made.clocks.now = datetime(2026, 12, 1, 12, tzinfo=UTC)
    counted(send(made, "pages", [9, 8, 7, 6, 5, 4]))
    counted(send(made, "odd", [300, 200, 100]))
    made.clocks.now = datetime(2027, 2, 1, 12, tzinfo=UTC)
    own_browser.enter()
    own_browser.open(here)

    assert "30 closed periods have budget left." in own_browser.text(".verdict")
    assert len(own_browser.all("#budget .mark .bar")) == 60
    own_browser.type("#epsilon", "0.25")
    for end in ("from", "to"):
        own_browser.run(f"document.getElementById('{end}').value = '2026-12-01'")
    own_browser.follow("#release-form button")
    assert "Remaining afterwards\n0.75" in own_browser.text("#dry-run")
    own_browser.follow("#release")
    assert own_browser.path.endswith("shown=1#shown")
    assert len(own_browser.all("#figures .mark .whisker")) == 6
    own_browser.find("#shown summary").click()
    assert len(own_browser.all("#shown tbody tr")) == 6
    assert "1 Dec 2026 · epsilon 0.25 · released 1 Feb 2027" in own_browser.text(".release")
    assert own_browser.audit() == []

    own_browser.size(NARROW)
    own_browser.open("/collections/odd/releases")
    assert "This collection has no releases" in own_browser.text()
    own_browser.follow(".empty a")
    assert own_browser.path == "/collections/odd"
    assert sorted(own_browser.texts(".dots tbody th")) == ["<b>bold</b> & co", LONG, "c"]
    assert own_browser.fits()
