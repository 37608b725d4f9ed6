"""How a client is set up: arguments before variables."""

from __future__ import annotations

import pytest

from veilcount_client.settings import read_settings

BOTH = {"VEILCOUNT_STATE": "redis://host", "VEILCOUNT_STATE_DIR": "there"}


@pytest.mark.parametrize("name", ["state", "state_dir"])
def test_an_argument_wins_over_every_variable_of_the_state(name: str) -> None:
    assert read_settings(BOTH, **{name: "here"}).state == "here"


def test_a_state_wins_over_a_state_dir() -> None:
    assert read_settings(BOTH).state == "redis://host"
    assert read_settings({}, state="redis://a", state_dir="here").state == "redis://a"


def test_without_any_the_client_chooses() -> None:
    assert read_settings({}).state is None
