"""Notice, consent page, dialog, receipt and dashboard state the same of a question, nobody less.

The expected words and probabilities are computed here independently: from Warner's coin.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from html import unescape
from math import comb, exp
from pathlib import Path

import pytest

from veilcount_aggregator.operate.cli.main import run
from veilcount_aggregator.records.definitions import DefinitionSource, add_definitions
from veilcount_analysis.privacy.shuffled.composed_notice import full_notice
from veilcount_client.integrations.dialog_texts import pieces
from veilcount_client.integrations.pages import PrivacyPages
from veilcount_client.recording import receipt_messages
from veilcount_client.testing import ClientHarness
from veilcount_shared import Collection, guessing
from veilcount_shared.collection import Adjacency, Model
from veilcount_shared.guessing import times_in_twenty
from veilcount_shared.notice import Texts, notice, statements

from ..aggregator.web.api.deployment_fixtures import NOW, Deployment, deployment
from ..aggregator.web.dashboard.page_fixtures import logged_in
from ..notice_definitions import (
    COLLECTIONS,
    KEY_FILES,
    OWNER,
    PURPOSE,
    TABLES,
    definitions_text,
    frequency,
    last_day,
)

Face = Callable[[str], str]
FACES = ["command", "consent_page", "receipt_text", "receipt_page", "dashboard", "dialog"]


def majority(epsilon: float, answers: int) -> float:
    """The chance that a majority of randomized bits, each true by odds of e^epsilon, is true."""
    right = exp(epsilon) / (1 + exp(epsilon))
    return sum(
        comb(answers, n)
        * right**n
        * (1 - right) ** (answers - n)
        * (1 if 2 * n > answers else 0.5 if 2 * n == answers else 0)
        for n in range(answers + 1)
    )


def probabilities(collection: Collection) -> tuple[float, float]:
    """The chance to guess between two answers from one, and from all of a person."""
    epsilon = float(collection.unit_epsilon)
    if collection.model is Model.CENTRAL:
        epsilon *= 2 if collection.epsilon_adjacency is Adjacency.ADD_REMOVE else 1
        return majority(epsilon, 1), majority(epsilon * collection.priced_answers, 1)
    answers = 1 if collection.is_trend else collection.answering * collection.per_day
    return majority(epsilon, 1), majority(epsilon, answers)


def missing(text: str, collection: Collection) -> list[str]:
    """Return what a text for people lacks of a question."""
    stated = [float(each) / 20 for each in re.findall(r"at most ([0-9.]+) times in 20", text)]
    lacks = [
        words
        for words in (
            collection.question,
            PURPOSE,
            OWNER,
            frequency(collection),
            f"and {last_day(collection)} (UTC)",
            "stays counted",
        )
        if words not in text
    ]
    return lacks + [
        f"{chance:.4f}"
        for chance in probabilities(collection)
        if not any(chance <= bound < chance + 0.0501 for bound in stated)
    ]


def plain(html: str) -> str:
    """Return the text of a page, in one line."""
    bare = re.sub(r"<(script|style)\b.*?</\1>|<[^>]*>", " ", html, flags=re.DOTALL)
    return " ".join(unescape(bare).split()).replace(" .", ".")


@pytest.fixture
def command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Face:
    """`veilcount notice`."""
    path = tmp_path / "collections.toml"
    path.write_text(definitions_text(), encoding="utf-8")

    def read(name: str) -> str:
        run(["notice", str(path), name])
        return capsys.readouterr().out

    return read


@pytest.fixture
def consent_page(veilcount: ClientHarness) -> Face:
    def read(name: str) -> str:
        client = veilcount.client({name: COLLECTIONS[name]}, trust_curator=True)
        return plain(PrivacyPages(lambda: client).consent(client, dict).html)

    return read


@pytest.fixture
def receipt_text(veilcount: ClientHarness) -> Face:
    def read(name: str) -> str:
        client = veilcount.client({name: COLLECTIONS[name]}, trust_curator=True)
        return client.receipt().text()

    return read


@pytest.fixture
def receipt_page(veilcount: ClientHarness) -> Face:
    def read(name: str) -> str:
        client = veilcount.client({name: COLLECTIONS[name]}, trust_curator=True)
        return plain(client.receipt().html())

    return read


@pytest.fixture
def dialog(veilcount: ClientHarness) -> Face:
    """The desktop's."""

    def read(name: str) -> str:
        client = veilcount.client({name: COLLECTIONS[name]}, trust_curator=True)
        texts = Texts(None, receipt_messages.MESSAGES)
        return "".join(text for text, _ in pieces(client, [name], texts, "en"))

    return read


@pytest.fixture(scope="module")
def deployed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    path = tmp_path_factory.mktemp("faces")
    with deployment(path, now=NOW) as served:
        source = DefinitionSource(definitions_text(), KEY_FILES)
        add_definitions(served.aggregator.store, source, NOW, "cli")
        served.aggregator.catalog_cache.refresh()
        yield served


@pytest.fixture
def dashboard(deployed: Deployment) -> Face:
    visitor = logged_in(deployed)
    return lambda name: visitor.get(f"/collections/{name}/privacy").text.replace(" .", ".")


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("face", FACES)
def test_a_face_states_purpose_owner_frequency_end_and_both_probabilities(
    face: str, name: str, request: pytest.FixtureRequest
) -> None:
    read: Face = request.getfixturevalue(face)

    assert missing(read(name), COLLECTIONS[name]) == []


@pytest.mark.parametrize(
    ("part", "lacking"),
    [
        ("_question", [PURPOSE]),
        ("_owner", [OWNER]),
        ("_frequency", ["At most once a month", "and 2027-11-30 (UTC)"]),
        ("_withdrawal", ["stays counted"]),
    ],
)
@pytest.mark.parametrize("face", FACES)
def test_a_notice_without_a_part_is_detected_on_every_face(
    face: str,
    part: str,
    lacking: list[str],
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Planted: a part of the one text is left out."""
    monkeypatch.setattr(statements, part, lambda *_: [])
    read: Face = request.getfixturevalue(face)

    assert missing(read("held"), COLLECTIONS["held"]) == lacking


@pytest.mark.parametrize("name", ["local", "removable"])
def test_a_probability_that_is_too_small_is_detected(
    name: str, receipt_text: Face, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Planted: both probabilities are a fifth below the bound."""
    monkeypatch.setattr(
        statements, "times_in_twenty", lambda chance: times_in_twenty(chance * 4 / 5)
    )

    assert len(missing(receipt_text(name), COLLECTIONS[name])) == 2


@pytest.mark.parametrize("face", FACES)
def test_a_face_has_the_very_sentences_of_the_notice(
    face: str, request: pytest.FixtureRequest
) -> None:
    """Where there is an analysis, also what a year of batches reveals to the server alone."""
    read: Face = request.getfixturevalue(face)
    stated = full_notice if face in {"command", "dashboard"} else notice
    for name, collection in COLLECTIONS.items():
        page = read(name)
        assert [part for part in stated(collection).texts() if part.text not in page] == []


def test_an_add_remove_epsilon_that_is_not_doubled_is_detected(
    receipt_text: Face, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Planted: the stated epsilon, as if it were of substitution."""
    monkeypatch.setattr(guessing, "two_values_epsilon", lambda _, epsilon: epsilon)

    assert missing(receipt_text("exchanged"), COLLECTIONS["exchanged"]) == []
    assert len(missing(receipt_text("removable"), COLLECTIONS["removable"])) == 2


def test_a_definition_is_text_on_every_page(consent_page: Face, receipt_page: Face) -> None:
    """Markup in a purpose is shown as it was written."""
    for read in (consent_page, receipt_page):
        assert "<what>" in read("local")


def test_the_receipt_as_json_has_the_notice(veilcount: ClientHarness) -> None:
    client = veilcount.client({"local": COLLECTIONS["local"]})
    (entry,) = json.loads(json.dumps(client.receipt().json()))["collections"]
    text = " ".join(part["text"] for part in entry["notice"])

    assert missing(f"{entry['question']} {text}", COLLECTIONS["local"]) == []
