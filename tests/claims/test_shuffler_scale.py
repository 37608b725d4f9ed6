"""What is reckoned of a fleet behind shufflers agrees with the product, and with draws."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from bench.scale import DAY
from bench.shuffler_scale import FLEETS, HOUR, SHUFFLER_COSTS, Crowds
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from veilcount_shared import Collection
from veilcount_shared.oblivious_http.key_config import KeyConfig
from veilcount_shared.schedule import period_end
from veilcount_shared.shuffling.crowd import Crowd
from veilcount_shared.shuffling.envelope import Envelope
from veilcount_shared.shuffling.times import batch_rules, draw_sending_instant
from veilcount_shuffler.held_file import encode_record

from ..shuffler.parties import collection


def definition_by(unit: str) -> Collection:
    dates: dict[str, Any] = {"from": "2027-01-01", "until": "2027-06-01"}
    return collection(1000, unit=unit, **dates)


def test_sizes_and_times_of_a_shuffler_are_the_products() -> None:
    """Of its own records, limits and graces; a byte more would be noticed."""
    for unit, days in (("day", 1), ("week", 7), ("month", 30)):
        question = definition_by(unit)
        grace = {crowds.grace_days for crowds in FLEETS if crowds.period_days == days}
        assert grace == {batch_rules(question).grace}
    private = X25519PrivateKey.generate().public_key().public_bytes_raw()
    config = KeyConfig(1, private)
    size = Crowd.of_period(question, 0, config.encode(), config).size
    envelope = len(Envelope(bytes(16), 0, bytes(size)).encode())

    assert size == SHUFFLER_COSTS.sealed_bytes
    assert len(encode_record(bytes(size))) == SHUFFLER_COSTS.stored_bytes
    assert len(encode_record(bytes(size + 1))) != SHUFFLER_COSTS.stored_bytes
    assert envelope < SHUFFLER_COSTS.wire_bytes < envelope + 300


def test_the_busiest_hour_of_envelopes_is_as_busy_as_is_reckoned() -> None:
    """Instants as a device draws them: the mean of the third; the peak is twice as much."""
    question = definition_by("week")
    crowds = Crowds("a question a week", 7, 7, devices=4000)
    end = period_end(question, 0)
    seconds = [
        (draw_sending_instant(number.to_bytes(32, "big"), question, 0) - end).total_seconds()
        for number in range(int(crowds.devices))
    ]
    hourly = np.histogram(seconds, bins=int(7 / 3 * 24), range=(0, 7 * DAY / 3))[0]

    assert abs(hourly.mean() * 2 / HOUR / crowds.peak - 1) < 0.01
    assert hourly.max() < crowds.peak * HOUR


def test_a_hand_over_that_takes_longer_than_a_period_needs_more_shufflers() -> None:
    shufflers = {crowds.name: crowds.shufflers for crowds in FLEETS}
    needed = replace(FLEETS[1], period_days=7)

    assert shufflers["four questions a day"] > shufflers["a question a day"] == 1
    assert needed.shufflers == 1
