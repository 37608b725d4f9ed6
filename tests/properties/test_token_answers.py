"""How many answers remain of a token collection, as a device with its tokens really gives them."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, timedelta

import pytest

from veilcount_client.recording.answer_times import is_answering
from veilcount_client.state import Coverage, PersonState
from veilcount_shared.collection import answers_by_consent, describe_answers

from ..client.device_fixtures import at, one_collection


@pytest.mark.parametrize(
    "keys",
    [
        {"answers": 3, "until": "2026-12-09"},
        {"answers": 7, "until": "2026-12-09"},
        {"answers": 2, "unit": "month", "from": "2026-12-10", "until": "2027-06-10"},
        {"answers": 1, "unit": "week", "from": "2026-12-03", "until": "2026-12-14"},
    ],
)
def test_the_days_of_consent_are_those_of_a_device(keys: dict[str, object]) -> None:
    collection = one_collection("it", linkage="token", tokens="a" * 64, **keys)["it"]
    steps = dict(answers_by_consent(collection))
    remaining = steps[collection.start]
    person = PersonState(b"", b"s" * 32, b"r" * 32)

    for day in range((collection.until - date(2026, 12, 1)).days):
        remaining = steps.get(date(2026, 12, 1) + timedelta(days=day), remaining)
        coverage = {collection.fingerprint: Coverage(at(day, 9))}
        consenting = replace(person, coverage=coverage)
        periods = range(collection.periods)

        assert sum(is_answering(consenting, collection, period) for period in periods) == remaining
    assert remaining == 0


def test_one_sentence_states_it() -> None:
    keys = {"linkage": "token", "tokens": "a" * 64, "answers": 3, "until": "2026-12-09"}
    sentence = describe_answers(one_collection("it", **keys)["it"])

    assert sentence == (
        "by the day of consent: 3 answers before 2026-12-06, from 2026-12-06 on one fewer each"
        " day, none from 2026-12-08 on: tokens are fetched a period ahead"
    )
    assert describe_answers(one_collection("it")["it"]) is None
