"""The texts of the kit, by key, in English; words in braces are filled in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from veilcount_shared.notice import Texts

MESSAGES: Mapping[str, str] = {
    "cli_help": "Usage statistics of this command.",
    "cli_help_on": "Agree to be counted.",
    "cli_help_off": "Decline, and delete what waits to be sent.",
    "cli_help_status": "Show what you decided, and whether anything waits.",
    "cli_help_show": "Show each question, what was sent, and what it can reveal.",
    "cli_help_forget": "Delete what is stored about you.",
    "cli_invitation": "{program} would like to count this, if you agree:",
    "cli_choice": "Nothing is recorded unless you agree: `{command} on`. To decline:"
    " `{command} off`. All about it: `{command} show`.",
    "cli_is_on": "Statistics are on. `{command} show` shows what was sent; `{command} off` turns"
    " them off.",
    "cli_is_off": "Statistics are off: you declined. `{command} on` turns them on.",
    "cli_is_open": "Statistics are off: you have not decided. `{command} on` turns them on.",
    "cli_new": "New, and off until you agree again by `{command} on`: {questions}.",
    "cli_problem": "Statistics are off: {problem}.",
    "cli_waiting": "{reports:One report waits|# reports wait} to be sent.",
    "cli_sending": "A process in the background sends what is due within the hour.",
    "cli_still_sending": "The process that was sending has not ended yet; nothing is left for it to"
    " send.",
}


def texts(own: Mapping[str, object] | None) -> Texts:
    """Return the texts in use, also those of the notice and the receipt."""
    from veilcount_shared.notice import Texts  # noqa: PLC0415 - no run waits for a text

    from ...recording import receipt_messages  # noqa: PLC0415 - likewise

    return Texts(own, {**receipt_messages.MESSAGES, **MESSAGES})


def count(number: int) -> int:
    """Return a number that chooses between the forms of a text."""
    from veilcount_shared.notice import Count  # noqa: PLC0415 - likewise

    return Count(number)
