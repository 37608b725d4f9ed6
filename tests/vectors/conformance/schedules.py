"""The schedule: what a person's secret and root draw before there is any data."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from veilcount_client.recording import answer_times
from veilcount_client.state import Coverage, PersonState
from veilcount_client.testing import SeededRandomSource
from veilcount_shared import schedule
from veilcount_shared.collection import Collection
from veilcount_shared.definition_record import QuestionGroup
from veilcount_shared.randomness import WORDS, RandomSource
from veilcount_shared.schedule import SecretRandomSource

from .definitions import parsed
from .reports import ListedRandomSource

Vector = dict[str, Any]


def schedules(document: Vector) -> Vector:
    """Return the document as it is drawn here."""
    collections = parsed(document["toml"])
    persons = [_person(collections[each["collection"]], each) for each in document["persons"]]
    apart = [_apart(collections[each["collection"]], each) for each in document["apart"]]
    return document | {
        "persons": persons,
        "apart": apart,
        "periods": [
            [name, at, schedule.period_at(collections[name], datetime.fromisoformat(at))]
            for name, at, _ in document["periods"]
        ],
        "cohorts": [_cohort(vector) for vector in document["cohorts"]],
        "groups": [_question(*row[:3]) for row in document["groups"]],
        "words": [_words(vector) for vector in document["words"]],
        "below": [_below(vector) for vector in document["below"]],
        "bernoulli": [_bernoulli(*row[:3]) for row in document["bernoulli"]],
    }


def _person(collection: Collection, vector: Vector) -> Vector:
    secret = bytes.fromhex(vector["secret"])
    return {
        "collection": collection.name,
        "secret": vector["secret"],
        "fingerprint": collection.fingerprint,
        "asked": schedule.is_selected(secret, collection),
        "answering periods": sorted(schedule.draw_answering_periods(secret, collection)),
        "answers": [_answer(collection, secret, pinned) for pinned in vector["answers"]],
    }


def _answer(collection: Collection, secret: bytes, pinned: Vector) -> Vector:
    place = pinned["period"], pinned["answer"]
    names = {
        schedule.derive_pseudonym(
            secret, collection, *place[:1], SeededRandomSource(seed), place[1]
        )
        for seed in (0, 1)
    }
    return {
        "period": place[0],
        "answer": place[1],
        "instant": schedule.draw_instant(secret, collection, *place).isoformat(),
        "slot": schedule.draw_slot(secret, collection, *place),
        "pseudonym": names.pop().hex() if len(names) == 1 else None,
    }


def _apart(collection: Collection, vector: Vector) -> Vector:
    """Return what a person draws whose root is not the secret, from a consent on."""
    secret, root = (bytes.fromhex(vector[key]) for key in ("secret", "root"))
    since = datetime.fromisoformat(vector["consent"]).timestamp()
    coverage = {collection.fingerprint: Coverage(since)}
    person = PersonState(b"", secret, root, coverage=coverage)
    periods = range(collection.periods)
    answered = [each for each in periods if answer_times.is_answering(person, collection, each)]
    return {
        "collection": collection.name,
        "secret": vector["secret"],
        "root": vector["root"],
        "consent": vector["consent"],
        "answering periods": answered,
        "answers": [list(_times(person, collection, each)) for each in answered[:3]],
        "tokens requested": _iso(answer_times.tokens_requested_at(person, collection)),
    }


def _times(person: PersonState, collection: Collection, period: int) -> Iterator[Any]:
    yield period
    for at in answer_times.instants(person, collection, period):
        yield _iso(at)
    yield _answer(collection, person.secret, {"period": period, "answer": 0})


def _iso(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat()


def _cohort(vector: Vector) -> Vector:
    secret, terms = bytes.fromhex(vector["secret"]), (vector[key] for key in ("app", "draw", "of"))
    return vector | {"cohort": schedule.draw_cohort(secret, *terms)}


def _question(secret: str, digest: str, members: int) -> list[Any]:
    group = QuestionGroup("habits", tuple(map(str, range(members))), digest)
    return [secret, digest, members, int(schedule.draw_question(bytes.fromhex(secret), group))]


# -- words, and integers of them -------------------------------------------------------------------


def _source(vector: Vector) -> SecretRandomSource:
    return SecretRandomSource(bytes.fromhex(vector["secret"]), *vector["purpose"])


def _words(vector: Vector) -> Vector:
    source = _source(vector)
    return vector | {"words": [f"{source.word():016x}" for _ in vector["words"]]}


class CountedRandomSource(RandomSource):
    """Serves the words of another source, and counts them."""

    __slots__ = ("_source", "taken")

    def __init__(self, source: RandomSource) -> None:
        self._source = source
        self.taken = 0

    def word(self) -> int:
        """Return the next word."""
        self.taken += 1
        return self._source.word()


def _below(vector: Vector) -> Vector:
    counted = CountedRandomSource(_source(vector))
    draws = []
    for n, *_ in vector["draws"]:
        before = counted.taken
        draws.append([n, str(counted.below(int(n))), counted.taken - before])
    return vector | {"draws": draws}


def _bernoulli(numerator: str, denominator: str, words: list[str]) -> list[Any]:
    counted = CountedRandomSource(ListedRandomSource(words))
    outcome = counted.bernoulli(int(numerator), int(denominator))
    return [numerator, denominator, words, outcome, counted.taken]


#: numerator, denominator, the words that are there
_BERNOULLI = [
    *((WORDS // 2, WORDS, (WORDS // 2 - 1,)), (WORDS // 2, WORDS, (WORDS // 2,))),
    *((13485650502877570762 + up, WORDS, (13485650502877570762,)) for up in (-1, 0, 1)),
    *((1, WORDS, (word,)) for word in (0, 1)),
    *((WORDS - 1, WORDS, (WORDS - word,)) for word in (1, 2)),
    *((2, 3, (word << 62, 0)) for word in range(4)),
    *((1, 1, ()), (0, 1, ())),
    *((WORDS, 3 * WORDS, (word << 62, 0, 0, 0)) for word in range(4)),
]


# -- what was added to the file --------------------------------------------------------------------

_TOKENS = """
[tokened]
question = "Is it?"
boolean = true
epsilon = 1
unit = "week"
answers = 3
linkage = "token"
tokens = "{digest}"
from = 2026-12-15
until = 2027-03-15

[hidden]
question = "Is it?"
boolean = true
epsilon = 1
unit = "month"
presence = "hidden"
from = 2026-12-15
until = 2027-03-15

[linked]
question = "Is it?"
boolean = true
epsilon = 1
unit = "event"
per_day = 3
linkage = "collection"
from = 2026-12-15
until = 2027-03-15

[once]
question = "Is it?"
boolean = true
epsilon = 1
unit = "user"
from = 2026-12-15
until = 2027-03-15

[second]
question = "Is it?"
boolean = true
epsilon = 1
unit = "week"
from = 2026-12-15
until = 2027-03-15

[first]
question = "Which?"
values = [1, 2]
epsilon = 1
unit = "week"
from = 2026-12-15
until = 2027-03-15

[group.habits]
questions = ["second", "first"]
""".format(digest="ab" * 32)

_HAND_WRITTEN = 40  # lines
#: a secret whose first instant of the day 24 is its last second
_LATEST = (65_904).to_bytes(32, "big").hex()

_CONSENTS = {
    "events": "2026-12-24T18:00:00+00:00",
    "weekly": "2027-01-05T12:34:56+00:00",
    "monthly": "2026-12-01T00:00:00+00:00",
    "curated": "2027-01-31T23:59:59+00:00",
    "tokened": "2027-01-05T12:34:56+00:00",
    "hidden": "2026-12-31T23:30:00+00:00",
    "once": "2027-02-01T00:00:00+00:00",
    "linked": "2026-12-20T06:00:00+00:00",
    "first": "2026-12-20T06:00:00+00:00",
    "second": "2026-12-20T06:00:00+00:00",
}
_INSTANTS = {
    "events": [
        "2026-11-30T23:59:59",
        "2026-12-01T00:00:00",
        "2027-02-28T23:59:59",
        "2027-03-01T00:00:00",
    ],
    "weekly": [
        "2026-12-15T00:00:00",
        "2026-12-20T23:59:59",
        "2026-12-21T00:00:00",
        "2027-01-03T12:00:00",
    ],
    "monthly": [
        "2026-12-14T23:59:59",
        "2026-12-31T23:59:59",
        "2027-01-01T00:00:00",
        "2027-03-14T23:59:59",
    ],
    "once": [
        "2026-12-14T23:59:59",
        "2026-12-15T00:00:00",
        "2027-03-14T23:59:59",
        "2027-03-15T00:00:00",
    ],
}


def schedule_inputs(document: Vector) -> Vector:
    """Return what is pinned of the schedule, without what a root draws and the calendar says."""
    if "[second]" not in document["toml"]:
        document["toml"] = document["toml"][:_HAND_WRITTEN] + _TOKENS.splitlines()
    secrets = [bytes(range(32)).hex(), bytes(range(100, 132)).hex(), "ff" * 32]
    rows = [
        {"collection": name, "secret": secret, "root": root, "consent": consent}
        for name, consent in _CONSENTS.items()
        for secret, root in (
            (secrets[0], secrets[1]),
            (secrets[1], secrets[0]),
            (secrets[0], secrets[2]),
        )
    ]
    zones = ("+00:00", "+01:00")
    periods = [
        [name, at + zone, None] for name, row in _INSTANTS.items() for at in row for zone in zones
    ]
    bernoulli = [[*map(str, row[:2]), [*map(str, row[2])]] for row in _BERNOULLI]
    latest = {"collection": "events", "secret": _LATEST, "answers": [{"period": 24, "answer": 0}]}
    persons = [each for each in document["persons"] if each["secret"] != _LATEST] + [latest]
    groups = [
        [secret, digest * 32, members]
        for secret in secrets
        for digest, members in (("00", 2), ("ab", 3), ("ab", 7), ("cd", 100))
    ]
    added = {
        "groups": groups,
        "persons": persons,
        "apart": rows,
        "periods": periods,
        "bernoulli": bernoulli,
        "about": ABOUT,
    }
    return document | added


ABOUT = (
    "What a person's secret draws, as if it were the root as well. A pseudonym of null is random,"
    " not drawn from the secret. `words` are the first 64-bit words of the coins of a purpose: word"
    " w is the (w mod 4)-th 8 bytes, big-endian, of HMAC-SHA256(secret, fields + block w div 4 as 8"
    ' bytes), where fields are "veilcount", "1" and those of the purpose, each as UTF-8 behind'
    " its length in 4 bytes. `below`: n, the integer that `below(n)` draws, and how many words it"
    " takes, one draw after another. `bernoulli`: numerator, denominator, words; the outcome, and"
    " how many of the words it takes. `apart`: a person with a root of its own who consented at an"
    " instant: the periods that are answered; of the first three the period, the instants at which"
    " a report may be made, each put off to the next whole minute (in the period of the consent the"
    " same share of what was left), and what the secret draws; when tokens are asked for (a device"
    " asks only with linkage token). `periods`: the period of an instant, null outside of all."
    " `groups`: a root, the digest of a group, how many members it has; the place of the one"
    " that is drawn."
)
