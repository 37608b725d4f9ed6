"""The definitions page in a browser: chosen files, a preview, push, close."""

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


def test_files_are_chosen_previewed_pushed_and_closed(own_browser: Browser, tmp_path: Path) -> None:
    file, words = tmp_path / "collections.toml", tmp_path / "word.txt"
    file.write_text(FILE)
    words.write_text("\n".join(f"word-{place}" for place in range(500)))
    own_browser.enter(Role.ADMIN)
    own_browser.open("/definitions")

    assert "No definitions yet" in own_browser.text()
    own_browser.find("#file").send_keys(str(file))
    own_browser.find("#lists").send_keys(str(words))
    own_browser.follow("#preview")
    assert "Which word is looked up first?" in own_browser.texts("h2")
    assert "A new collection." in own_browser.text()
    own_browser.follow("#push")
    assert own_browser.text("[role=status]").startswith("Pushed: word.")
    assert own_browser.site.deployment.series("word").collection.inputs == 500
    own_browser.find(".confirm summary").click()
    own_browser.follow(".confirm button")
    assert "word is closed" in own_browser.text("[role=status]")
    assert own_browser.site.deployment.series("word").closed


def test_an_error_keeps_the_typed_text(own_browser: Browser) -> None:
    own_browser.expects("422")
    own_browser.enter(Role.ADMIN)
    own_browser.open("/definitions")
    typed = FILE.replace("lists/word.txt", "nowhere.txt")
    own_browser.run("document.getElementById('text').value = arguments[0]", typed)
    own_browser.follow("#preview")

    assert "values_file" in own_browser.text("[role=alert]")
    assert own_browser.find("#text").get_attribute("value") == typed
