"""The schedule of answers: periods, instants, slots and pseudonyms, drawn from a secret.

Nothing here depends on a value. Every draw is uniform, of `SecretRandomSource`: HMAC-SHA256 under
the person's secret, so that a restart draws the same and a server cannot predict it.
"""

from __future__ import annotations

import hmac
import struct
from datetime import UTC, date, datetime, time, timedelta
from functools import lru_cache

from . import periods
from .collection import Collection, Linkage
from .definition_record import QuestionGroup
from .limits import PSEUDONYM_BYTES
from .mechanisms import TrendMechanism, TrendState
from .periods import Unit
from .randomness import RandomSource

SECRET_BYTES = 32
UNLINKED = frozenset({Linkage.NONE, Linkage.TOKEN})


class SecretRandomSource(RandomSource):
    """A source that always draws the same for one secret and one purpose.

    Word w of a purpose is the w-th 8 bytes of HMAC-SHA256(secret, purpose, 0), (..., 1), and so on.
    """

    __slots__ = ("_block", "_purpose", "_secret", "_words")

    def __init__(self, secret: bytes, *purpose: str | int) -> None:
        self._secret = secret
        self._purpose = _encode(*purpose)
        self._block = 0
        self._words: list[int] = []

    def word(self) -> int:
        """Return the stream's next 64 bits."""
        if not self._words:
            block = _hmac(self._secret, self._purpose + self._block.to_bytes(8, "big"))
            self._words = list(struct.unpack(">4Q", block))[::-1]
            self._block += 1
        return self._words.pop()


# -- the calendar ----------------------------------------------------------------------------------


def period_at(collection: Collection, now: datetime) -> int | None:
    """Return the number of the period that contains an instant; None outside the campaign."""
    if now.utcoffset() is None:
        raise ValueError("an instant needs its time zone: datetime.now(UTC)")
    day = now.astimezone(UTC).date()
    if not collection.start <= day < collection.until:
        return None
    return periods.period_number(collection.unit, collection.start, day)


def period_start(collection: Collection, period: int) -> datetime:
    """Return the first instant of a period, not before the campaign's."""
    first = periods.first_day(collection.unit, collection.start, period)
    return _midnight(max(first, collection.start))


def period_end(collection: Collection, period: int) -> datetime:
    """Return the first instant after a period, not after the campaign's end."""
    if collection.unit is Unit.USER:
        return _midnight(collection.until)
    following = periods.first_day(collection.unit, collection.start, period + 1)
    return _midnight(min(following, collection.until))


# -- what is drawn before any data exists ----------------------------------------------------------


def draw_answering_periods(secret: bytes, collection: Collection, first: int = 0) -> frozenset[int]:
    """Return the periods in which this person answers: a uniform subset of those from the first on.

    As many as the collection asks for, or all that are left.
    """
    left = collection.periods - first
    randomness = SecretRandomSource(secret, "answers", collection.fingerprint)
    drawn = randomness.sample(left, min(collection.answering, left))
    return frozenset(first + period for period in drawn)


def draw_instant(secret: bytes, collection: Collection, period: int, answer: int = 0) -> datetime:
    """Return the instant of a period's answer: uniform over the seconds of the period."""
    randomness = SecretRandomSource(secret, "instant", collection.fingerprint, period, answer)
    start = period_start(collection, period)
    seconds = (period_end(collection, period) - start) // timedelta(seconds=1)
    return start + timedelta(seconds=randomness.below(seconds))


def draw_trend(secret: bytes, collection: Collection) -> TrendState:
    """Return the level and the signs of a person's trend, before any value exists."""
    randomness = SecretRandomSource(secret, "trend", collection.fingerprint)
    return trend_mechanism(collection).draw_state(randomness)


def trend_mechanism(collection: Collection) -> TrendMechanism:
    """Return the mechanism of a trend, or refuse any other collection."""
    mechanism = collection.mechanism
    if not isinstance(mechanism, TrendMechanism):
        raise TypeError(f"{collection.name}: it is no trend")
    return mechanism


def draw_slot(secret: bytes, collection: Collection, period: int, answer: int) -> int:
    """Return the slot of a period's answer: the answers take the period's slots in random order.

    So a slot number does not reveal how many answers came before.
    """
    if collection.linkage in UNLINKED:
        return 0
    place = _order(secret, collection.fingerprint, period, collection.per_day)[answer]
    if collection.linkage is Linkage.PERIOD:
        return place
    return period * collection.per_day + place


def derive_pseudonym(
    secret: bytes, collection: Collection, period: int, randomness: RandomSource, answer: int = 0
) -> bytes:
    """Return the 16 bytes a period's answers travel under; fresh ones where nothing may link.

    Those of a slot with a token follow from the secret, since its token is for them.
    """
    if collection.linkage is Linkage.TOKEN:
        return derive_token_pseudonym(secret, collection.fingerprint, period, answer)
    if collection.linkage is Linkage.NONE:
        return _bytes(randomness, PSEUDONYM_BYTES)
    epoch = period if collection.linkage is Linkage.PERIOD else 0
    return derive_linked_pseudonym(secret, collection.fingerprint, epoch)


def derive_linked_pseudonym(secret: bytes, fingerprint: str, epoch: int) -> bytes:
    """Return the 16 bytes that all answers of one epoch travel under."""
    return _hmac(secret, _encode("pseudonym", fingerprint, epoch))[:PSEUDONYM_BYTES]


def derive_token_pseudonym(secret: bytes, fingerprint: str, period: int, answer: int) -> bytes:
    """Return the 16 bytes of one slot, which no other slot has."""
    purpose = _encode("token", "pseudonym", fingerprint, period, answer)
    return _hmac(secret, purpose)[:PSEUDONYM_BYTES]


def derive_token_salt(secret: bytes, fingerprint: str, period: int, answer: int) -> bytes:
    """Return the 48 bytes of salt in the token of one slot."""
    purpose = _encode("token", "salt", fingerprint, period, answer)
    return _hmac(secret, purpose, "sha384")


def is_selected(secret: bytes, collection: Collection) -> bool:
    """Whether the person is in the collection's cohort, or drawn for it in its group or pair."""
    if collection.group is not None:
        return draw_question(secret, collection.group) == collection.name
    cohort = collection.cohort
    if cohort and draw_cohort(secret, collection.app, cohort.draw, cohort.of) != cohort.number:
        return False
    if collection.twin is None:
        return True
    pair = sorted((collection.name, collection.twin))
    randomness = SecretRandomSource(secret, "twin", collection.app, *pair)
    return pair[randomness.below(2)] == collection.name


def draw_cohort(secret: bytes, app: str, draw: str, of: int) -> int:
    """Return which of the cohorts of one draw the person is in."""
    return SecretRandomSource(secret, "cohort", app, draw, of).below(of)


def draw_question(secret: bytes, group: QuestionGroup) -> str:
    """Return which of a group's questions the person answers, in all periods."""
    randomness = SecretRandomSource(secret, "group", group.digest)
    return group.questions[randomness.below(len(group.questions))]


@lru_cache(maxsize=128)  # each of a day's answers asks for it
def _order(secret: bytes, fingerprint: str, period: int, size: int) -> tuple[int, ...]:
    """Return a uniform permutation of the period's slots."""
    return tuple(SecretRandomSource(secret, "slots", fingerprint, period).shuffled(range(size)))


def _bytes(randomness: RandomSource, size: int) -> bytes:
    return b"".join(randomness.below(256).to_bytes(1, "big") for _ in range(size))


def _encode(*fields: str | int) -> bytes:
    """Return fields as bytes that no other fields have: each after its length."""
    raw = [str(field).encode() for field in ("veilcount", 1, *fields)]
    return b"".join(len(part).to_bytes(4, "big") + part for part in raw)


def _hmac(secret: bytes, message: bytes, digest: str = "sha256") -> bytes:
    if len(secret) != SECRET_BYTES:
        raise ValueError(f"a secret has {SECRET_BYTES} bytes, not {len(secret)}")
    return hmac.digest(secret, message, digest)


def _midnight(day: date) -> datetime:
    return datetime.combine(day, time(), UTC)
