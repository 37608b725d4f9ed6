"""Drafts of a record of processing (Art. 30 GDPR) and of an impact assessment (Art. 35).

Each entry takes the sentences of the notice that are about it, by key: what people read and what
an authority reads cannot differ. An entry without a sentence, a text or a blank is left out: of a
question without segments no risk of segments is stated.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from ..errors import format_value
from .draft_messages import DRAFTS
from .messages import Texts
from .statements import SHOWN_DIGITS, Notice, Statement


@dataclass(frozen=True, slots=True)
class DraftSection:
    """One heading and its paragraphs, in Markdown."""

    title: str
    level: int
    paragraphs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Draft:
    """A document to be completed."""

    title: str
    status: str  # that it is a draft, and who completes it
    sections: tuple[DraftSection, ...]


@dataclass(frozen=True, slots=True)
class _Entry:
    """A label, the beginnings of the notice's keys that belong to it, own sentences and blanks."""

    label: str
    keys: tuple[str, ...] = ()
    own: tuple[str, ...] = ()
    blanks: tuple[str, ...] = ()


_PURPOSE = _Entry("purpose", ("purpose", "no_purpose"))
_OWNER = _Entry("owner", ("owner", "no_owner"))
_BASIS = _Entry("basis", own=("consent",), blanks=("basis",))
_PERSONS = _Entry("persons", ("cohort", "group", "twin"), blanks=("persons",))
_DATA = _Entry("data", ("answers", "tables", "cross", "measure"), blanks=("special",))
_PUBLIC = _Entry("public", ("presence", "shuffler_presence", "segment", "linkage"))
_FREQUENCY = _Entry("frequency", ("often", "takes", "first_run", "changes", "dates", "replaces"))
_RECIPIENTS = _Entry(
    "recipients",
    ("true_value", "direct", "relay", "shuffler", "app_server", "linkage_token"),
    blanks=("recipients",),
)
_TRANSFERS = _Entry("transfers", blanks=("transfers",))
_RETENTION = _Entry(
    "retention",
    (*("counted", "row", "issuer_record", "waits", "held", "late", "sending"), "shuffler_keeps"),
    blanks=("retention",),
)
_GUESS = (
    *("guess", "guess_report", "guess_reports", "guess_trend", "guess_release", "guess_releases"),
    *("guess_together", "epsilon", "two_adversaries", "delta", "noise", "doubt"),
)
_SAFEGUARDS = _Entry(
    "safeguards", ("randomized", "true_value", *_GUESS, "cap"), blanks=("safeguards",)
)
_RIGHTS = _Entry("rights", ("withdrawal", "stays", "issuer_erases"), blanks=("rights",))
RECORD = (
    *(
        _PURPOSE,
        _OWNER,
        _BASIS,
        _PERSONS,
        _DATA,
        _PUBLIC,
        _FREQUENCY,
        _RECIPIENTS,
        _TRANSFERS,
        _RETENTION,
    ),
    _SAFEGUARDS,
)
DESCRIPTION = (*RECORD[:-1], _Entry("necessity", _SAFEGUARDS.keys, blanks=("necessity",)), _RIGHTS)
RISKS = (
    _Entry("risk_one", ("guess", "guess_report", "guess_trend", "guess_release")),
    _Entry("risk_all", ("guess_reports", "guess_releases", "doubt", "habit")),
    _Entry("risk_presence", ("presence", "shuffler_presence")),
    _Entry("risk_link", ("linkage",)),
    _Entry("risk_address", ("direct", "relay", "shuffler_address", "app_server")),
    _Entry("risk_segment", ("segment",)),
    _Entry("risk_curator", ("true_value",)),
    _Entry("risk_device", ("waits", "held", "late")),
    _Entry("risk_group", ("common",)),
)
EXACT = "guess"  # a sentence of its own; the other keys begin with theirs


def draft_record(notices: Sequence[Notice]) -> Draft:
    """Draft the record of processing activities of an app's questions."""
    return Draft(_title("records", notices), DRAFTS["status"], tuple(_record(notices)))


def draft_assessment(
    notices: Sequence[Notice], *, day: Fraction, month: Fraction, life: Fraction
) -> Draft:
    """Draft the impact assessment; the epsilons are those of all questions of one person."""
    amounts = {"day": day, "month": month, "life": life}
    sections = tuple(_assessment(notices, amounts))
    return Draft(_title("assessment", notices), DRAFTS["status"], sections)


def _title(document: str, notices: Sequence[Notice]) -> str:
    return DRAFTS[f"title_{document}"].format(app=_app(notices))


def _app(notices: Sequence[Notice]) -> str:
    return ", ".join(dict.fromkeys(notice.app for notice in notices))


def _record(notices: Sequence[Notice]) -> Iterator[DraftSection]:
    yield _controller(notices)
    for notice in notices:
        yield _heading(notice)
        yield from _sections(notice, RECORD)


def _assessment(
    notices: Sequence[Notice], amounts: Mapping[str, Fraction]
) -> Iterator[DraftSection]:
    yield _controller(notices)
    for notice in notices:
        yield _heading(notice)
        yield from _sections(notice, DESCRIPTION)
        risks = (text for entry in RISKS if (text := _risk(notice, entry)))
        yield DraftSection(DRAFTS["risks"], 3, (*risks, _blank(notice, "remains")))
    sums = {name: format_value(epsilon) for name, epsilon in amounts.items()}
    together = DRAFTS["together_sum"].format(**sums)
    yield DraftSection(DRAFTS["together"], 2, (together, _blank(notices[0], "together")))
    blanks = (_blank(notices[0], name) for name in ("advice", "views", "authority", "decision"))
    yield DraftSection(DRAFTS["decision"], 2, tuple(blanks))


def _controller(notices: Sequence[Notice]) -> DraftSection:
    blanks = (_blank(notices[0], name) for name in ("controller", "officer"))
    return DraftSection(DRAFTS["controller"], 2, tuple(blanks))


def _heading(notice: Notice) -> DraftSection:
    identity = DRAFTS["identity"].format(
        question=f"\u201c{notice.question}\u201d", fingerprint=notice.fingerprint[:SHOWN_DIGITS]
    )
    return DraftSection(notice.collection, 2, (identity,))


def _sections(notice: Notice, entries: Sequence[_Entry]) -> Iterator[DraftSection]:
    for entry in entries:
        own = [DRAFTS[key] for key in entry.own]
        text = " ".join([*_sentences(notice, entry.keys), *own])
        blanks = [_blank(notice, name) for name in entry.blanks]
        if paragraphs := [*filter(None, [text]), *blanks]:
            yield DraftSection(DRAFTS[entry.label], 3, tuple(paragraphs))


def _risk(notice: Notice, entry: _Entry) -> str:
    """Return a risk with what the notice says of it; empty if it says nothing."""
    text = " ".join(_sentences(notice, entry.keys))
    return text and f"{DRAFTS[entry.label]} {text}"


def _blank(notice: Notice, name: str) -> str:
    return DRAFTS["blank"].format(what=DRAFTS[f"blank_{name}"].format(app=notice.app))


def _sentences(notice: Notice, keys: Sequence[str]) -> Iterator[str]:
    texts = Texts()
    for part in notice.parts:
        for statement in part.statements:
            if any(_belongs(statement, key) for key in keys):
                yield texts(statement.key, **statement.values)


def _belongs(statement: Statement, key: str) -> bool:
    name = statement.key.removeprefix("notice_")
    return name == key or (key != EXACT and name.startswith(f"{key}_"))
