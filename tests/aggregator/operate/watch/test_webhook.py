"""Events reach a real receiver once, in order, whatever it does meanwhile."""

from __future__ import annotations

import pytest

from veilcount_aggregator.operate.watch import WatchEvent, Webhook
from veilcount_aggregator.operate.watch.webhook import FIRST_PAUSE, LONGEST_PAUSE, MOST_EVENTS

from ....system.server import free_port
from .receiver import DRIPS, HANGS, Receiver, listening


def event(number: int) -> WatchEvent:
    return WatchEvent("rule", "firing", f"event {number}", "2026-11-23T00:00:00+00:00")


def texts(receiver: Receiver) -> list[str]:
    return [each["text"] for each in receiver.accepted]


@pytest.mark.parametrize("trouble", [500, 503, 429, 408, DRIPS, HANGS])
def test_what_is_not_accepted_is_sent_again_in_order(trouble: int) -> None:
    """Not at once, and the address, which may be a secret, is in no line."""
    lines: list[str] = []
    receiver = Receiver(204, trouble)
    with listening(receiver) as url:
        webhook = Webhook(url, lines.append, seconds=0.5)
        for number in range(3):
            webhook.add(event(number))
        webhook.deliver(100)
        webhook.deliver(100 + FIRST_PAUSE / 2)
        assert (texts(receiver), webhook.waiting) == (["event 0"], 2)

        webhook.deliver(100 + FIRST_PAUSE)

    assert texts(receiver) == ["event 0", "event 1", "event 2"]
    assert webhook.waiting == 0
    (line,) = lines
    assert "2 events wait, again in 1 s" in line
    assert "secret" not in line


def test_what_is_refused_for_good_is_not_sent_again() -> None:
    lines: list[str] = []
    receiver = Receiver(400)
    with listening(receiver) as url:
        webhook = Webhook(url, lines.append)
        webhook.add(event(0))
        webhook.add(event(1))
        webhook.deliver(0)

    assert texts(receiver) == ["event 1"]
    assert lines == ["the webhook refuses 'rule': HTTP 400; it is not sent again"]


def test_an_unreachable_receiver_is_tried_less_often_and_the_newest_events_are_kept() -> None:
    lines: list[str] = []
    webhook = Webhook(f"http://127.0.0.1:{free_port()}/", lines.append)
    for number in range(MOST_EVENTS + 1):
        webhook.add(event(number))
    now = 0.0
    for _ in range(10):
        webhook.deliver(now)
        now += LONGEST_PAUSE

    assert [line.rpartition("again in ")[2] for line in lines] == [
        *["1 s", "2 s", "4 s", "8 s", "16 s", "32 s"],
        *["60 s"] * 4,
    ]
    assert "ConnectionRefusedError" in lines[0]
    assert webhook.waiting == MOST_EVENTS
