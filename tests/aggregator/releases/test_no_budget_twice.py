"""Whatever is restarted, put back, lost, unlocked or retired: no period's budget is spent twice."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from contextlib import suppress
from copy import deepcopy
from fractions import Fraction
from itertools import count
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from veilcount_aggregator.errors import ReleaseRefused
from veilcount_aggregator.releases.journal_state import StateFile
from veilcount_aggregator.releases.privacy_filter import PrivacyFilter
from veilcount_aggregator.releases.release_journal import ReleaseJournal
from veilcount_aggregator.releases.store_confirmation import registered_journals
from veilcount_aggregator.store.memory.store import MemoryStore
from veilcount_analysis.releases import price_query
from veilcount_shared.epsilon import EPSILON_GRAIN

from ..curator_fixtures import AGE, OVER, wanted

HOSTS = 4
QUERIES = ("count", "sum", "mean")
EPSILONS = ("0.25", "0.5", "1")
CALLS = 40  # of the store, in a release: what happens in the middle happens before one of them

Act = tuple[Any, ...]


#: of the store, before which something may happen
CALLED = {"generation", "generations", "records", "change_records", "incarnation"}


class RewoundStore(MemoryStore):
    """A store that is put back to an older state, and has a new incarnation then."""

    def __init__(self) -> None:
        super().__init__()
        self.saved = [deepcopy(self.content)]
        self.lives = 0
        self.before: Callable[[], None] = lambda: None

    def __getattribute__(self, name: str) -> Any:
        if name in CALLED:
            self.before()
        return super().__getattribute__(name)

    def save(self) -> None:
        self.saved.append(deepcopy(self.content))

    def rewind(self, number: int) -> None:
        self.content = deepcopy(self.saved[number % len(self.saved)])
        self.restart()

    def restart(self) -> None:
        self.lives += 1
        self.content.incarnation = self.lives


class Deployment:
    """Hosts on one store, and every answer that ever left one of them."""

    def __init__(self, folder: Path) -> None:
        self.store = RewoundStore()
        self.journals = [ReleaseJournal(folder / f"{number}.jsonl") for number in range(HOSTS)]
        self.running = {0, 1}
        self.draws = count()
        self.left: dict[int, dict[str, int]] = {}
        self.start()
        self.settle()
        self.store.saved = []
        self.store.save()

    def start(self) -> None:
        self.filters = [PrivacyFilter(self.store, journal) for journal in self.journals]

    def tick(self, host: int) -> None:
        if host in self.running:
            self.filters[host].tick(OVER)

    def ask(
        self, query: tuple[int, str, str, int], calls: int = -1, middle: Act = ("restart",)
    ) -> None:
        if query[0] in self.running:
            with pytest.MonkeyPatch.context() as patch, suppress(ReleaseRefused):
                patch.setattr(self.store, "before", interrupting(self, calls, middle))
                self.release(*query)

    def settle(self) -> None:
        for host in sorted(self.running) * 3:
            self.filters[host].tick(OVER)

    def release(self, host: int, query: str, epsilon: str, period: int) -> None:
        question = price_query(wanted(query, epsilon, period), AGE.collection)
        drawn = {"draw": next(self.draws)}
        paid = self.filters[host].release(AGE, question, lambda: drawn, OVER, "")
        self.left[int(paid.release.answer["draw"])] = dict(paid.release.charges)

    def unlock(self, host: int) -> None:
        if self.journals[host].path.exists():
            self.filters[host].restore_missing(OVER, "cli")

    def retire(self, host: int) -> None:
        state = StateFile.for_journal(self.journals[host].path).load()
        known = registered_journals(self.store)
        if state is not None and state.id in known and host not in self.running:
            self.filters[host].retire(state.id, OVER, "cli")

    def spent(self) -> dict[str, Fraction]:
        total: defaultdict[str, Fraction] = defaultdict(Fraction)
        for charges in self.left.values():
            for period, charge in charges.items():
                total[period] += Fraction(charge, EPSILON_GRAIN)
        return total


host = st.integers(0, HOSTS - 1)
ask = st.tuples(host, st.sampled_from(QUERIES), st.sampled_from(EPSILONS), st.integers(0, 1))
saved = st.integers(0, 5)
STORE_ACTS = st.one_of(
    st.tuples(st.just("rewind"), saved),
    st.tuples(st.just("restart")),
    st.tuples(st.just("tick"), host),
)
ACTS: st.SearchStrategy[Act] = st.one_of(
    st.tuples(st.just("ask"), ask),
    st.tuples(st.just("ask"), ask, st.integers(0, CALLS), STORE_ACTS),
    st.tuples(st.just("tick"), host),
    st.tuples(st.just("settle")),
    st.tuples(st.just("save")),
    STORE_ACTS,
    st.tuples(st.just("start"), host),
    st.tuples(st.just("stop"), host),
    st.tuples(st.just("unlock"), host),
    st.tuples(st.just("retire"), host),
)


def do(deployed: Deployment, act: Act) -> None:
    match act:
        case ("start", who):
            deployed.running.add(who)
        case ("stop", who):
            deployed.running.discard(who)
        case ("save" | "restart" | "rewind" as name, *arguments):
            getattr(deployed.store, name)(*arguments)
        case (name, *arguments):
            getattr(deployed, name)(*arguments)


def interrupting(deployed: Deployment, calls: int, act: Act) -> Callable[[], None]:
    left = count(calls, -1)

    def before() -> None:
        if next(left) == 0:
            do(deployed, act)

    return before


A_IS_GONE = [
    ("ask", (0, "count", "1", 0)),
    ("stop", 0),
    ("rewind", 0),
    ("start", 2),
    ("settle",),
    ("ask", (1, "sum", "1", 0)),
    ("ask", (2, "sum", "1", 0)),
]
ALL_THAT_KNEW_ARE_GONE = [
    ("start", 2),
    ("settle",),
    ("ask", (2, "count", "1", 0)),
    *[("stop", each) for each in (0, 1, 2)],
    ("rewind", 0),
    ("start", 3),
    *[("retire", each) for each in (0, 1)],
    ("settle",),
    ("ask", (3, "sum", "1", 0)),
]


def run(folder: Path, acts: Sequence[Act]) -> None:
    """Have all of it happen; then see to everything, as an operator would."""
    deployed = Deployment(folder)
    for act in acts:
        do(deployed, act)

        assert all(spent <= 1 for spent in deployed.spent().values()), act
    for _ in range(2):
        for number in range(HOSTS):
            deployed.unlock(number)
            deployed.retire(number)
        deployed.running.add(0)
        deployed.settle()
    deployed.release(0, "count", "0.000001", 9)  # it never stands still for good

    assert all(spent <= 1 for spent in deployed.spent().values())


@settings(max_examples=40)
@given(acts=st.lists(ACTS, max_size=25))
@example(acts=A_IS_GONE)
@example(acts=ALL_THAT_KNEW_ARE_GONE)
def test_all_that_ever_left_is_within_the_budget(memory: Path, acts: list[Act]) -> None:
    run(Path(mkdtemp(dir=memory)), acts)


@pytest.mark.parametrize("loss", [("rewind", 0), ("restart",)])
@pytest.mark.parametrize("calls", range(0, CALLS, 2))
def test_a_store_that_goes_back_in_the_middle_of_a_release_pays_once(
    memory: Path, calls: int, loss: Act
) -> None:
    first = (0, "count", "1", 0)
    other = (1, "sum", "1", 0)
    run(
        Path(mkdtemp(dir=memory)),
        [("ask", first, calls, loss), ("tick", 1), ("tick", 0), ("ask", other), ("ask", first)],
    )


@pytest.mark.full
@pytest.mark.timeout(600)
@settings(max_examples=500)
@given(acts=st.lists(ACTS, min_size=5, max_size=60))
def test_all_that_ever_left_is_within_the_budget_in_long_histories(
    memory: Path, acts: list[Act]
) -> None:
    run(Path(mkdtemp(dir=memory)), acts)
