"""The page of definitions in a real browser: chosen files, a preview, push, close."""

from __future__ import annotations

from pathlib import Path

from tests.browser.chromium import Browser
from veilcount_aggregator.auth.api_keys import Role

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


def test_files_are_chosen_previewed_pushed_and_closed(guest: Browser, tmp_path: Path) -> None:
    file, words = tmp_path / "collections.toml", tmp_path / "word.txt"
    file.write_text(FILE)
    words.write_text("\n".join(f"word-{place}" for place in range(500)))
    guest.enter(Role.ADMIN)
    guest.open("/definitions")

    assert "No definitions yet" in guest.text()
    guest.find("#file").send_keys(str(file))
    guest.find("#lists").send_keys(str(words))
    guest.follow("#preview")
    assert "Which word is looked up first?" in guest.texts("h2")
    assert "A new collection." in guest.text()
    guest.follow("#push")
    assert guest.text("[role=status]").startswith("Pushed: word.")
    assert guest.house.deployment.series("word").collection.inputs == 500
    guest.find(".confirm summary").click()
    guest.follow(".confirm button")
    assert "word is closed" in guest.text("[role=status]")
    assert guest.house.deployment.series("word").closed


def test_a_mistake_keeps_what_was_typed(guest: Browser) -> None:
    guest.expects("422")
    guest.enter(Role.ADMIN)
    guest.open("/definitions")
    typed = FILE.replace("lists/word.txt", "nowhere.txt")
    guest.run("document.getElementById('text').value = arguments[0]", typed)
    guest.follow("#preview")

    assert "values_file" in guest.text("[role=alert]")
    assert guest.find("#text").get_attribute("value") == typed
