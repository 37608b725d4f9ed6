"""The receipt: what was spent, one total for each adjacency, and the device's limit by its side."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from html import escape
from html.parser import HTMLParser
from pathlib import Path
from unittest.mock import patch

import pytest

from veilcount_client import Client
from veilcount_client.recording import known_definitions
from veilcount_client.state import StateError
from veilcount_client.testing import ClientHarness

from ..delivery.app_client import NOBODY
from ..device_fixtures import HOUR, Device, at, file, minutes_of, one_collection

YES = True
BUDGET = {"model": "central", "unit": "month"}
THREE = file(
    local={"epsilon": 1, "unit": "month"},
    removable={**BUDGET, "budget": 2, "adjacency": "add-remove"},
    exchanged={**BUDGET, "budget": 4, "adjacency": "substitute"},
)


def test_each_adjacency_has_a_total_the_plain_sum_is_a_limit(veilcount: ClientHarness) -> None:
    """Of a person who answered one local collection, and one of a curator's of each adjacency."""
    client = veilcount.client(THREE, trust_curator=True)
    before = client.receipt()
    for name in THREE:
        client.record(name, YES)
    veilcount.advance(days=1)
    receipt = client.receipt()
    text, document = receipt.text(), receipt.json()
    with_epsilon = [line for line in text.splitlines() if "epsilon " in line]
    adjacencies = [each["adjacency"] for each in document["collections"]]

    assert (before.spent, before.charged) == ((), 0)
    assert "Over all collections: epsilon" not in before.text()
    assert document["spent"] == [
        {"model": "local", "adjacency": "substitute", "epsilon": 1.0},
        {"model": "central", "adjacency": "substitute", "epsilon": 4.0},
        {"model": "central", "adjacency": "add-remove", "epsilon": 2.0},
    ]
    assert (document["charged"], document["ceiling"]) == (7, 7)
    assert adjacencies == ["substitute", "add-remove", "substitute"]
    assert len(with_epsilon) == 6
    assert all("substitution" in line or "add-remove" in line for line in with_epsilon)
    assert (
        "limit on this device: 7 of at most 7, the plain sum of the stated epsilons"
        " (a safety limit, no privacy figure)"
    ) in text
    assert "epsilon 7" not in text


def test_what_is_forgotten_stays_spent_under_its_definition(veilcount: ClientHarness) -> None:
    client = veilcount.client(THREE, trust_curator=True)
    client.record("removable", YES)
    veilcount.advance(days=1)
    client.forget()
    (total,) = client.receipt().spent

    assert (total.model, total.adjacency, total.epsilon) == ("central", "add-remove", 2)


# -- answers, and when they were given -------------------------------------------------------------


def test_all_answers_are_counted_not_only_the_last_periods(tmp_path: Path) -> None:
    """Also of a row that the aggregator has closed."""
    device = Device(tmp_path, one_collection("it"))
    for day in range(3):
        device.run_until(at(day, 12))
        device.send()
    three = device.client.receipt().entries[0]
    device.wire.shut()
    device.run_until(at(3, 12))
    device.send()
    (closed,) = device.client.receipt().entries

    assert (three.answers, three.spent) == (3, 3)
    assert (closed.answers, closed.closed) == (4, True)
    assert "; 4 answers given" in device.client.receipt().text()


@pytest.mark.parametrize(
    ("unit", "when"),
    [
        ("event", "2026-12-09"),
        ("day", "2026-12-09"),
        ("week", "2026-12-07 to 2026-12-13"),
        ("month", "2026-12"),
        ("user", "2026-12-01 to 2026-12-30"),
    ],
)
def test_a_report_has_dates_not_a_period_number(unit: str, when: str, tmp_path: Path) -> None:
    device = Device(tmp_path, one_collection("it", unit=unit), at(8, 9))
    device.send()
    receipt = device.client.receipt()

    assert f"  delivered: {when}, randomized answer" in receipt.text()
    assert [each["when"] for each in receipt.entries[0].sent] == [when]
    assert f">{when}<" in receipt.html()


# -- what waits ------------------------------------------------------------------------------------

ANSWER = "Not randomized yet: an answer for {} waits {}, until {} at the latest or until {}."
TRUE_VALUE = "Not sent yet: a true value for {} waits {}, until {} at the latest or until {}."
ON_DEVICE = ("on this device", "this app next runs after that")
IN_MEMORY = ("in this app's memory", "the app ends")
MONTHLY = {"unit": "month", "takes": "last", "held": "device"}
CENTRAL = {"model": "central", "budget": 1}
KEPT = [
    (MONTHLY, ANSWER, ON_DEVICE, "2026-12", "2026-12-31"),
    (MONTHLY | CENTRAL, TRUE_VALUE, ON_DEVICE, "2026-12", "2026-12-31"),
    ({"takes": "last"}, ANSWER, IN_MEMORY, "2026-12-01", "2026-12-02"),
    ({"takes": "last"} | CENTRAL, TRUE_VALUE, IN_MEMORY, "2026-12-01", "2026-12-02"),
    ({"late": 3} | CENTRAL, TRUE_VALUE, IN_MEMORY, "2026-12-01", "2026-12-05"),
]


@pytest.mark.parametrize(("keys", "template", "place", "when", "until"), KEPT)
def test_what_waits_is_named_with_its_place_and_its_end(  # noqa: PLR0917 - one case
    keys: dict[str, object],
    template: str,
    place: tuple[str, str],
    when: str,
    until: str,
    tmp_path: Path,
) -> None:
    """As text, on the page and as JSON; and no more once it was reported."""
    collections = one_collection("it", **keys)
    device = Device(tmp_path, collections, at(0, 0, 60), person=1, trust_curator=True)
    before = device.client.receipt()
    device.record()
    during = device.client.receipt()
    (kept,) = during.json()["collections"][0]["kept_values"]
    device.run_until(at(31))
    after = device.client.receipt()
    sentence = template.format(when, place[0], until, place[1])

    assert f"  {sentence}\n" in during.text()
    assert escape(sentence) in during.html()
    assert (kept["when"], kept["until"]) == (when, until)
    for receipt in (before, after):
        assert "yet:" not in receipt.text() + receipt.html()
        assert receipt.json()["collections"][0]["kept_values"] == ()
    assert len(device.wire.reports) == 1


def test_a_state_and_a_visit_are_named_as_what_they_are(tmp_path: Path) -> None:
    """Until the last report, or until the last period can no longer be reported."""
    short = {"until": "2026-12-03", "late": 1}
    collections = file(
        trend={"measure": "trend", "changes": 1, **short}, visit={"takes": "returning", **short}
    )
    with minutes_of(HOUR):
        device = Device(tmp_path, collections, at(0, 0, 60), person=1)
        device.record()
        text = device.client.receipt().text()
        device.run_until(at(4))

    assert "The state is kept on this device; the next report, for 2026-12-0" in text
    assert "When you were last here is kept on this device, until 2026-12-04 or until this" in text
    assert "kept on this device" not in device.client.receipt().text()


def test_a_true_value_on_its_way_is_not_lost(tmp_path: Path) -> None:
    """The state counts it as lost with its process, until it is delivered; a crash shows that."""
    device = Device(tmp_path, one_collection("it", **CENTRAL), trust_curator=True)
    device.record()
    waiting = device.client.receipt()
    device.crash()
    device.start()
    crashed = device.client.receipt()

    assert (waiting.losses, waiting.entries[0].answers) == ({}, 1)
    assert (crashed.losses, crashed.entries[0].kept_values) == ({"crashed (it)": 1}, ())


# -- earlier definitions ---------------------------------------------------------------------------


def test_earlier_forms_are_listed_with_what_was_sent(tmp_path: Path) -> None:
    """A form of a question that goes on, and a question that is gone with what it cost."""
    device = Device(tmp_path, file(it={"question": "Old?"}, gone={"question": "Gone?"}))
    device.send()
    device.stop()
    device.clock.advance(days=1)
    device.start(file(it={"question": "New?", "epsilon": 0.5}))
    device.client.consent(True)
    device.send()
    receipt = device.client.receipt()
    (entry,) = receipt.entries
    old, gone = receipt.earlier

    assert (entry.answers, entry.spent) == (None, 1.5)
    assert (old.question, old.spent, gone.question, gone.spent) == ("Old?", 0, "Gone?", 1)
    assert [each["when"] for each in (*old.sent, *gone.sent)] == ["2026-12-01"] * 2
    assert [(each.model, each.epsilon) for each in receipt.spent] == [("local", 2.5)]
    assert "Earlier: Gone? [gone] (from 2026-12-01 until 2026-12-31)\n  spent 1" in receipt.text()
    assert receipt.json()["earlier"][1]["name"] == "gone"
    assert "Gone?" in receipt.html()


def test_what_several_adjacencies_spent_together_has_none(tmp_path: Path) -> None:
    """One account for all forms of a question: which spent how much is not kept."""
    central = {"unit": "day", "model": "central", "budget": 1, "adjacency": "add-remove"}
    definitions = one_collection("it", **central)
    device = Device(tmp_path, definitions, trust_curator=True, ceiling=99, daily_ceiling=9)
    device.send()
    device.stop()
    device.clock.advance(days=1)
    device.start(one_collection("it", **central | {"adjacency": "substitute"}))
    device.client.consent(True)
    device.send()
    (total,) = device.client.receipt().spent

    assert (total.adjacency, total.epsilon) == (None, 2)
    assert "no longer known, adjacency not recorded: epsilon 2" in device.client.receipt().text()


def test_what_is_remembered_of_definitions_is_bounded(tmp_path: Path) -> None:
    device = Device(tmp_path, one_collection("it"))
    claims = device.client.reservation.claims
    forms = [
        replace(device.collections["it"], epsilon=Fraction(number, 1000))
        for number in range(1, known_definitions.MOST + 10)
    ]
    for form in forms:
        known_definitions.remember(device.state, [form], claims)
    kept = list(known_definitions.known_definitions(device.state))

    assert kept == [each.fingerprint for each in forms[-known_definitions.MOST :]]


def test_a_receipt_never_raises(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without definitions, without a state, when the disk fails later, behind a kill switch."""
    (tmp_path / "file").write_text("a file")
    device = Device(tmp_path / "state", one_collection("it"))
    options = {"collections": THREE, "state_dir": tmp_path / "off"}
    receipts = [
        Client(NOBODY, state_dir=tmp_path).receipt(),
        Client(NOBODY, collections=THREE, state_dir=tmp_path / "file").receipt(),
    ]
    with patch.object(type(device.state), "spent", side_effect=StateError("disk full")):
        receipts.append(device.client.receipt())
    with patch.object(type(device.state), "sent", side_effect=ZeroDivisionError):
        receipts.append(device.client.receipt())
    monkeypatch.setenv("DO_NOT_TRACK", "1")
    receipts.append(Client(NOBODY, **options).receipt())  # type: ignore[arg-type] # of its options
    words = ["no definitions", "File exists", "disk full", "ZeroDivisionError", "DO_NOT_TRACK"]

    for receipt, word in zip(receipts, words, strict=True):
        assert receipt.entries == ()
        assert word in receipt.problem
        assert word in receipt.text()
        assert word not in receipt.html()  # people of a website need not know its paths
        assert "There is no receipt now" in receipt.html()
        assert word in receipt.json()["problem"]


# -- how much a guess is worth ---------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [0.5, 2])
def test_a_right_guess_is_stated_for_a_boolean(epsilon: float, veilcount: ClientHarness) -> None:
    """From one report: the randomizer keeps the answer so often. From three: two of them agree."""
    collections = one_collection("it", epsilon=epsilon, answers=3)
    client = veilcount.client(collections)
    before = client.receipt().entries[0]
    veilcount.flush()
    for _ in range(40):
        client.record("it", YES)
        veilcount.advance(days=1)
    (entry,) = client.receipt().entries
    keeps = math.exp(epsilon) / (1 + math.exp(epsilon))
    majority = keeps**3 + 3 * keeps**2 * (1 - keeps)

    assert before.guess_one == pytest.approx(keeps, abs=1e-6)
    assert before.guess_all is None
    assert entry.answers == 3
    assert entry.guess_all == pytest.approx(majority, abs=1e-6)
    right = {0.5: "14", 2: "19.3"}[epsilon]  # of 13.60 and 19.22
    assert f"{right} times in 20" in client.receipt().html()


def test_a_curator_need_not_guess(veilcount: ClientHarness) -> None:
    client = veilcount.client(THREE, trust_curator=True)
    local, removable, _ = client.receipt().entries

    assert local.guess_one is not None
    assert (removable.guess_one, removable.guess_all) == (None, None)
    assert "Your true answer, to the operator of the statistics server" in client.receipt().html()


# -- the page --------------------------------------------------------------------------------------


class Page(HTMLParser):
    """The elements of a page, with their attributes; unbalanced ones are an error."""

    EMPTY = frozenset({"meta", "rect", "link", "img"})

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self._open: list[str] = []
        self.feed(text)

        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in self.EMPTY:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in self.EMPTY:
            assert self._open.pop() == tag


def test_the_page_is_self_contained_and_holds_no_foreign_markup(veilcount: ClientHarness) -> None:
    """No script, no address; what a definition says is text. Bars are as long as figures say."""
    client = veilcount.client(
        file(
            it={"question": "<script>alert(1)</script> & more?", "epsilon": 2},
            other={"values": ["<b>", "x"], "unit": "user"},
        )
    )
    client.record("it", YES)
    client.record("other", "<b>")
    veilcount.flush()
    text = client.receipt().html(language='"de')
    page = Page(text)
    names = [name for name, _ in page.elements]
    widths = [float(each["width"] or 0) for name, each in page.elements if name == "rect"][:4]

    assert "&lt;script&gt;alert(1)&lt;/script&gt; &amp; more?" in text
    assert {"script", "link", "img", "iframe", "b>"}.isdisjoint(names)
    assert not any(
        key in {"src", "href", "style"} or key.startswith("on")
        for _, attributes in page.elements
        for key in attributes
    )
    assert "url(" not in text
    assert "@import" not in text
    assert page.elements[0] == ("html", {"lang": '"de'})
    assert names.count("h1") == 1
    assert widths == pytest.approx([598, 598 * 2 / 60, 598 * 1 / 60, 598 * 1 / 60], abs=0.1)


def test_an_app_may_replace_the_texts(veilcount: ClientHarness) -> None:
    """Lazily translated ones too; they are texts, not markup; a key that is not there is named."""

    class Lazy:
        def __str__(self) -> str:
            return "Was <i>gesendet</i> wurde"

    receipt = veilcount.client(THREE, trust_curator=True).receipt()

    assert "<h1>Was &lt;i&gt;gesendet&lt;/i&gt; wurde</h1>" in receipt.html(
        {"receipt_title": Lazy()}
    )
    assert "Epsilon measures" in receipt.html({"spent_text": "{unknown} {"})
    with pytest.raises(ValueError, match="messages = 'title'"):
        receipt.html({"title": "x"})
