"""How a client is set up: arguments before variables before defaults."""

from __future__ import annotations

import inspect
from pathlib import Path

import pytest

from veilcount_client import Client
from veilcount_client.options import ClientOptions
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


def test_the_clients_arguments_are_the_options_fields() -> None:
    """By name, type and default: the call takes them over by their names."""
    parameters = inspect.signature(Client).parameters.values()
    fields = inspect.signature(ClientOptions).parameters.values()

    assert [(item.name, item.annotation, item.default) for item in parameters] == [
        (item.name, item.annotation, item.default) for item in fields
    ]


def test_objects_and_a_keys_content_stand_in_for_no_variable() -> None:
    options = ClientOptions(collections={}, relay_keys=b"keys", state_dir=Path("here"))

    settings = options.read_settings()

    assert (settings.collections, settings.relay_keys, settings.state) == (None, None, "here")
