"""What the sub-commands do: on, off, status, show and forget. Each returns a text and a code."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from ...client import Client
from ...recording.receipt import WAITING
from ...state import StateError
from . import invitation
from .command_client import CommandClient
from .messages import count, texts
from .sender import worker_of

if TYPE_CHECKING:
    from veilcount_shared.notice import Texts

OK, FAILED = 0, 1
END_SECONDS = 15.0  # a sender that polls each second ends in less, also on a busy machine


class Result(NamedTuple):
    """What a sub-command prints, and its exit code."""

    text: str
    code: int = OK


def on(command: CommandClient) -> Result:
    """Agree to every question; they are shown as well."""
    client, words = command.open(), texts(command.messages)
    if problem := _problem(client, words):
        return Result(problem, FAILED)
    names = list(client._session.consents.accepted)  # noqa: SLF001 - this is a part of the client
    shown = invitation.text(command, client, names)
    client.consent(True, only=names)
    if not client.consented or client.must_ask:
        return Result(words("consent_failed"), FAILED)
    return Result(f"{shown}\n{words('cli_is_on', command=command.command)}")


def off(command: CommandClient) -> Result:
    """Decline everything; what waits is wiped, and a sender ends."""
    client, words = command.open(), texts(command.messages)
    if problem := _problem(client, words):
        return Result(problem, FAILED)
    client.consent(False)
    if client.consented is not False:
        return Result(words("consent_failed"), FAILED)
    return _stopped(command, client, words("cli_is_off", command=command.command))


def forget(command: CommandClient) -> Result:
    """Wipe what is stored of the person, after naming the rows that can be closed."""
    client, words = command.open(), texts(command.messages)
    if problem := _problem(client, words):
        return Result(problem, FAILED)
    rows = [words("forget_rows"), *map(str, rows)] if (rows := client.rows()) else []
    try:
        client.forget()
    except StateError:
        return Result(words("forget_failed"), FAILED)
    return _stopped(command, client, "\n".join([*rows, words("forget_done")]))


def _problem(client: Client, words: Texts) -> str:
    """Return why nothing can be stored now; empty without a problem."""
    problem = client.receipt().problem
    return words("cli_problem", problem=problem) if problem else ""


def _stopped(command: CommandClient, client: Client, text: str) -> Result:
    """Wait for the sender, which ends by itself when the consent is withdrawn."""
    if worker_of(client) is None or command.lock(client).is_free_within(END_SECONDS):
        return Result(text)
    return Result(f"{text}\n{texts(command.messages)('cli_still_sending')}", FAILED)


def status(command: CommandClient) -> Result:
    """Name the decision, how many reports wait, and whether a sender runs."""
    client, words = command.open(), texts(command.messages)
    if problem := _problem(client, words):
        return Result(problem)
    decided = {True: "cli_is_on", False: "cli_is_off", None: "cli_is_open"}[client.consented]
    lines = [words(decided, command=command.command)]
    if client.consented and (names := client.unasked()):
        lines.append(words("cli_new", command=command.command, questions=", ".join(names)))
    entries = client.receipt().entries
    if waiting := sum(row["status"] == WAITING for entry in entries for row in entry.sent):
        lines.append(words("cli_waiting", reports=count(waiting)))
    lock = command.lock(client)
    if lock.is_taken_soon() if waiting else lock.is_taken:
        lines.append(words("cli_sending"))
    return Result("\n".join(lines))


def show(command: CommandClient) -> Result:
    """Return the receipt, in which the notice of each question is."""
    return Result(command.open().receipt(command.language).text())


Action = Callable[[CommandClient], Result]
ACTIONS: Mapping[str, Action] = {
    "on": on,
    "off": off,
    "status": status,
    "show": show,
    "forget": forget,
}
