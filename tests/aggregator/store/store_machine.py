"""A store of any engine beside the plainest one: the same is done to both."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis.stateful import RuleBasedStateMachine, rule

from veilcount_aggregator.errors import StoreReadOnly
from veilcount_aggregator.store import Store, open_store
from veilcount_aggregator.store.memory.store import MemoryStore

from .engines import Empty
from .series_fixtures import digest


class StoreMachine(RuleBasedStateMachine):
    """A store, and the one in memory that says what it has to do."""

    empty: Empty

    def __init__(self) -> None:
        super().__init__()
        self.url = self.empty()
        self.store = open_store(self.url, make=True)
        self.model = MemoryStore()

    @rule()
    def open_again(self) -> None:
        """The process ends, and another begins."""
        self.store.close()
        self.store = open_store(self.url)

    def teardown(self) -> None:
        """Let go of the store."""
        self.store.close()

    def agree(self, act: Callable[[Store], object]) -> None:
        """Both do the same, or both are read-only and change nothing."""
        before = digest(self.store)
        try:
            expected = act(self.model)
        except StoreReadOnly:
            with pytest.raises(StoreReadOnly):
                act(self.store)
            assert digest(self.store) == before
        else:
            assert act(self.store) == expected
