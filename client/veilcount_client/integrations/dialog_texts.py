"""The texts of a consent dialog, in the words of the consent page, for any toolkit."""

from __future__ import annotations

from collections.abc import Iterator

from veilcount_shared.notice import Texts

from ..client import Client
from ..recording.receipt import respondent_notice

HEADING, STRONG, PLAIN = "heading", "strong", "plain"  # of a question, a title, a text


def pieces(
    client: Client, names: list[str], words: Texts, language: str
) -> Iterator[tuple[str, str]]:
    """Yield the texts of the dialog with their tags: the notice of each of these questions."""
    yield f"{words('consent_intro')}\n", PLAIN
    for name in names:
        notice = respondent_notice(client.collections[name], client.settings, language)
        yield f"{notice.question}\n", HEADING
        for part in notice.texts(words):
            yield f"{part.title}. ", STRONG
            yield f"{part.text}\n", PLAIN
