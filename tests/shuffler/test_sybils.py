"""999 Sybils around one person, over real bytes: what the server can guess is what covers leave it.

Everything is as it is served: reports are sealed, held on files, handed over in signed parts and
opened. The server knows its Sybils by their bytes, takes them out, and guesses between two values
by the two counts that are left, which is the best it can do [docs/shuffler-security.md, lemma 6].
"""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from unittest.mock import patch

import pytest
from scipy.stats import binomtest

from veilcount_analysis.privacy.shuffled import best_guess
from veilcount_client.testing import SeededRandomSource
from veilcount_shared.shuffling.plain_report import PlainReport
from veilcount_shared.shuffling.sealed_report import open_report
from veilcount_shuffler import shuffling_pass

from .parties import KEY, PRIVATE, HandClock, ShufflerStore, messages, seal

SYBILS, COVERS = 999, 142  # of four cells, `absent` among them
VALUES = "light", "dark"
ALPHA = 1e-4  # of each count of right guesses; all that decides about it is seeded


@dataclass
class Attack:
    """A crowd in which the server's Sybils wait for one person."""

    template: Path
    folder: Path
    sybils: frozenset[bytes]
    random: Random

    def right_guesses(self, number: int) -> int:
        """Return how often the server guesses the person's value rightly."""
        return sum(self._guesses_rightly() for _ in range(number))

    @property
    def source(self) -> SeededRandomSource:
        """A stream of its own."""
        return SeededRandomSource(self.random.getrandbits(64))

    def _guesses_rightly(self) -> bool:
        value = self.random.choice(VALUES)
        shutil.copytree(self.template, self.folder)
        store = ShufflerStore(self.folder, HandClock(), randomness=self.source)
        crowd = store.crowd
        message = crowd.collection.randomize(value, self.source)
        store.worker().hold([seal(crowd, message)])
        store.leave()
        store.rounds(1)
        batch = store.aggregator.sealed(crowd.crowd_id)
        store.close()
        shutil.rmtree(self.folder)
        counts = Counter(
            crowd.collection.unpack(
                PlainReport.decode(
                    open_report({KEY.key_id: PRIVATE}, crowd.crowd_id, crowd.period, sealed),
                    crowd.collection.message_bytes,
                ).message
            )
            for sealed in batch
            if sealed not in self.sybils
        )
        return self._guess(counts) == value

    def _guess(self, counts: Counter[int]) -> str:
        """Return the value of which there are more, or one of two at random."""
        light, dark = (counts[cell] for cell in range(len(VALUES)))
        return self.random.choice(VALUES) if light == dark else VALUES[light < dark]


@pytest.fixture(scope="module")
def waiting(tmp_path_factory: pytest.TempPathFactory) -> Attack:
    """A store that holds the Sybils' reports, each of which is what its sender likes."""
    folder = tmp_path_factory.mktemp("sybils")
    store = ShufflerStore(folder / "template", HandClock(), covers=COVERS)
    envelopes = messages(store.crowd, SYBILS)
    store.worker().hold(envelopes)
    store.close()
    sybils = frozenset(envelope.sealed for envelope in envelopes)
    return Attack(folder / "template", folder / "trial", sybils, Random(0))


@pytest.fixture
def attack(waiting: Attack) -> Attack:
    """The attack with a stream of its own."""
    return replace(waiting, random=Random(20261201))


def exact_guess(attack: Attack, covers: int) -> float:
    """Return how often the best guess is right, exactly."""
    store = ShufflerStore(attack.template, HandClock())
    guess = best_guess(store.crowd.collection.randomizer, covers)
    store.close()
    return guess


def agrees(right: int, number: int, guess: float) -> bool:
    """Whether so many right guesses are what a probability leads to."""
    return bool(binomtest(right, number, guess).pvalue > ALPHA)


MANY = pytest.param(2_000, 0.06, marks=[pytest.mark.full, pytest.mark.timeout(3_600)])


@pytest.mark.parametrize(("trials", "noticed"), [(120, 0.25), MANY])
def test_sybils_leave_the_guess_that_covers_promise(
    attack: Attack, trials: int, noticed: float
) -> None:
    """A guess that is better by `noticed` would be rejected, and so is that without covers."""
    exact, alone = exact_guess(attack, COVERS), exact_guess(attack, 0)
    right = attack.right_guesses(trials)

    assert (round(exact, 3), round(alone, 3)) == (0.544, 0.965)
    assert agrees(right, trials, exact)
    assert not agrees(right, trials, alone)
    assert not agrees(right, trials, exact + noticed)


def no_covers(*_: object) -> Iterator[bytes]:
    """Draw none."""
    return iter(())


def test_planted_without_covers_the_server_knows_the_value(attack: Attack) -> None:
    """It sees the one report that is not its own."""
    trials = 80
    with patch.object(shuffling_pass, "sealed_covers", no_covers):
        right = attack.right_guesses(trials)

    assert right / trials >= 0.9
    assert agrees(right, trials, exact_guess(attack, 0))
    assert not agrees(right, trials, exact_guess(attack, COVERS))
