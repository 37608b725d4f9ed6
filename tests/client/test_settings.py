"""How a client is set up: arguments before variables before defaults."""

from __future__ import annotations

import pytest

from veilcount_client.settings import JITTER, read_settings

BOTH = {"VEILCOUNT_STATE": "redis://host", "VEILCOUNT_STATE_DIR": "there"}


@pytest.mark.parametrize(
    ("variables", "arguments", "state"),
    [
        (BOTH, {"state": "here"}, "here"),
        (BOTH, {}, "redis://host"),
        ({}, {"state": "redis://a", "state_dir": "here"}, "redis://a"),
        ({}, {}, None),
    ],
)
def test_an_argument_wins_over_every_variable_and_a_state_over_a_directory(
    variables: dict[str, str], arguments: dict[str, str], state: str | None
) -> None:
    assert read_settings(variables, **arguments).state == state


@pytest.mark.parametrize(
    ("variable", "arguments", "jitter"), [("", {}, JITTER), ("5", {}, 5), ("5", {"jitter": 0}, 0)]
)
def test_no_jitter_is_a_choice(variable: str, arguments: dict[str, float], jitter: float) -> None:
    assert read_settings({"VEILCOUNT_JITTER": variable}, **arguments).jitter == jitter
