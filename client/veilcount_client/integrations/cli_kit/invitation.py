"""The invitation to be counted: what the definitions ask, in the words of their notices."""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import sha256

from ...client import Client
from .command_client import CommandClient
from .messages import texts
from .sender import worker_of

SHOWN = "notice of a command"  # note: the digest of the questions that were shown
REASON, CONTENT = 0, 1  # of a notice's parts: why it is asked, and what is sent


def first_notice(command: CommandClient, client: Client) -> str:
    """Return the invitation if the person has not decided and was not shown it; else nothing."""
    worker, names = worker_of(client), client.unasked()
    if worker is None or not names:
        return ""
    series = " ".join(sorted(client.collections[name].fingerprint for name in names))
    digest = sha256(series.encode()).hexdigest()[:16]
    if worker.state.note(SHOWN) == digest:
        return ""
    worker.state.keep(SHOWN, digest)
    return text(command, client, names)


def text(command: CommandClient, client: Client, names: Iterable[str]) -> str:
    """Return why each of these questions is asked, and what is sent."""
    from ...recording.receipt import respondent_notice  # noqa: PLC0415 - no run waits for a text

    words = texts(command.messages)
    questions: dict[str, list[str]] = {}  # by what is sent, which is the same for most
    for name in names:
        notice = respondent_notice(client.collections[name], client.settings, command.language)
        parts = notice.texts(words)
        line = f"  {notice.question} {parts[REASON].text}"
        questions.setdefault(f"{parts[CONTENT].title}: {parts[CONTENT].text}", []).append(line)
    return "\n".join(
        [
            words("cli_invitation", program=command.program),
            *(line for content, lines in questions.items() for line in (*lines, content)),
            words("cli_choice", command=command.command),
        ]
    )
