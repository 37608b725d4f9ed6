"""QuestionGroup: several collections of which each person answers one, drawn beforehand."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class QuestionGroup:
    """The members of a group, of which a person's root draws one, for the whole epsilon.

    Split epsilon over d questions, and the variance of each grows with d squared; with a drawn
    question it grows with d. The digest pins all members: whoever changes one changes the draw.
    """

    name: str
    questions: tuple[str, ...]
    digest: str

    def number(self, collection: str) -> int:
        """Return a member's place, which is the number that is drawn for it."""
        return self.questions.index(collection)
