"""What veilcount is made of is pinned, hashed, licensed, listed; and a flaw would be found."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from flask import Flask, request

from ..aggregator.operate.cli.server_fixtures import listening
from ..client.delivery.server_fixtures import nobody
from .supply import __main__ as supply
from .supply.bill import ELSEWHERE, bill, licence, unfree, unknown
from .supply.lock import PROJECT, flaws, pinned

PARTS = pinned(supply.LOCKS[0])
SOUND = (
    f"requests==2.34.2 \\\n    --hash=sha256:{'ab' * 32}\n    # via veilcount (pyproject.toml)\n"
)
UNSOUND = {
    "a range": SOUND.replace("==", ">="),
    "no release": "requests\n",
    "no hash": "requests==2.34.2\n",
    "a weak hash": SOUND.replace("sha256", "md5"),
    "one weak hash of two": SOUND + "    --hash=md5:" + "ab" * 16 + "\n",
    "a short hash": SOUND.replace("ab" * 32, "ab" * 31),
    "an address": "requests @ https://elsewhere.example/requests.whl\n",
    "another index": "--index-url https://elsewhere.example/simple\n" + SOUND,
    "a folder": "-e ./requests\n",
}


locked = pytest.mark.skipif(
    sys.prefix.endswith("-minimum"), reason="the oldest releases are not those of the lock"
)


@contextmanager
def database(known: dict[str, str], cut: int = 0) -> Iterator[str]:
    """Serve advisories by package, as the open database does; `cut` answers are left out."""
    app = Flask(__name__)

    @app.post("/v1/querybatch")
    def answer() -> dict[str, object]:
        purls = [each["package"]["purl"] for each in request.get_json()["queries"]]
        names = [purl.removeprefix("pkg:pypi/").partition("@")[0] for purl in purls]
        found = [{"vulns": [{"id": known[name]}]} if name in known else {} for name in names]
        return {"results": found[cut:]}

    with listening(app.wsgi_app) as url:
        yield url


@pytest.fixture(autouse=True)
def _the_bill_lies_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A test leaves no bill behind; no proxy stands before the loopback."""
    monkeypatch.setattr(supply, "BILL", tmp_path / "sbom.cdx.json")
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")


@pytest.mark.parametrize("lock", supply.LOCKS, ids=lambda lock: lock.name)
def test_every_part_is_one_release_by_its_hashes(lock: Path) -> None:
    assert flaws(lock.read_text(encoding="utf-8")) == []


def test_what_is_not_pinned_would_be_found() -> None:
    assert flaws(SOUND) == []
    assert [name for name, lock in UNSOUND.items() if not flaws(lock)] == []


def test_what_is_shipped_along_is_free_to_use(monkeypatch: pytest.MonkeyPatch) -> None:
    """By the words of its own metadata; terms that bind would be found."""
    shipped = [part for part in PARTS if not part.developing]
    names = {part.name for part in shipped}

    assert {"requests", "flask", "granian", "numpy"} <= names
    assert not {"pytest", "locust", "mypy"} & names
    assert unfree(shipped) == []
    monkeypatch.setattr("tests.security.supply.bill.licence", lambda _: "AGPL-3.0-only")
    assert unfree(PARTS) == [f"{part.name}: AGPL-3.0-only" for part in shipped]


def test_no_part_of_the_bill_has_an_unknown_licence() -> None:
    """Parts of other systems included; of another release of them, nothing is assumed."""
    licensed = [each["name"] for each in bill(PARTS)["components"] if each.get("licenses")]
    elsewhere = next(part for part in PARTS if part.name == "pywin32")

    assert licensed == [part.name for part in PARTS]
    assert unknown(PARTS) == []
    assert ELSEWHERE.keys() <= {part.purl for part in PARTS}
    assert unknown([replace(elsewhere, version="0.0.1")]) == ["pywin32"]


def test_an_unknown_licence_fails_the_check(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delitem(ELSEWHERE, "pkg:pypi/pywin32@312")
    licence.cache_clear()
    with database({}) as service:
        assert supply.main(service) == supply.FOUND
    licence.cache_clear()

    assert "licence of pywin32 is unknown" in capsys.readouterr().out


def test_the_bill_lists_every_part_and_who_needs_it() -> None:
    """As CycloneDX has it; the same lock gives the same bill."""
    made = bill(PARTS)
    refs = {each["ref"]: each["dependsOn"] for each in made["dependencies"]}
    listed = {each["purl"] for each in made["components"]}
    shipped = {each["name"] for each in made["components"] if each["scope"] == "required"}

    assert (made["bomFormat"], made["specVersion"]) == ("CycloneDX", "1.6")
    assert listed == {part.purl for part in PARTS}
    assert refs.keys() == listed | {PROJECT}
    assert {ref for on in refs.values() for ref in on} == listed
    assert all(each["hashes"] for each in made["components"])
    assert {"requests", "urllib3", "flask"} <= shipped
    assert bill(PARTS) == made
    assert "://" not in json.dumps(made)


@locked
@pytest.mark.parametrize(
    ("known", "cut", "code", "text"),
    [({}, 0, supply.WELL, "shipped along"), ({"urllib3": "PYSEC-1"}, 0, supply.FOUND, "PYSEC-1"),
     ({}, 1, supply.UNASKED, "NOT ASKED")],
    ids=["nothing known", "something known", "an answer is missing"],
)  # fmt: skip
def test_known_unknown_and_failed_look_ups_are_distinguished(
    known: dict[str, str], cut: int, code: int, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with database(known, cut) as service:
        assert supply.main(service) == code
    assert text in capsys.readouterr().out


@locked
def test_a_database_that_is_away_is_no_good_news(capsys: pytest.CaptureFixture[str]) -> None:
    with nobody() as service:
        assert supply.main(service) == supply.UNASKED
    assert "advisories are unknown" in capsys.readouterr().out


@locked
def test_what_is_installed_in_another_release_would_be_found() -> None:
    installed = next(part for part in PARTS if part.name == "requests")

    assert supply.strangers(PARTS) == []
    assert supply.strangers([replace(installed, version="0.0.1")])
