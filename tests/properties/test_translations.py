"""What people read of a definition in several languages, and what is refused."""

from __future__ import annotations

import pytest

from veilcount_shared.notice import notice

from .definition_harness import definition_file, parse_definition, refused

SPOKEN = """
question = {de = "Welches Farbschema?", en = "Which theme?", pt = "Qual tema?"}
purpose = {de = "Um es zu gestalten", pt-BR = "Para o desenho"}
values = ["light", "dark"]
other = "rest"
labels = {de = ["hell", "dunkel", "sonst"]}
""".strip()


@pytest.mark.parametrize(
    ("language", "question", "purpose", "answers"),
    [
        ("de", "Welches Farbschema?", "Um es zu gestalten", "hell, dunkel, sonst"),
        ("de-AT", "Welches Farbschema?", "Um es zu gestalten", "hell, dunkel, sonst"),
        ("DE_ch", "Welches Farbschema?", "Um es zu gestalten", "hell, dunkel, sonst"),
        ("pt-BR", "Qual tema?", "Para o desenho", "light, dark, rest"),
        ("pt", "Qual tema?", "Um es zu gestalten", "light, dark, rest"),
        ("", "Which theme?", "Um es zu gestalten", "light, dark, rest"),
        ("d", "Which theme?", "Um es zu gestalten", "light, dark, rest"),
    ],
)
def test_a_text_is_that_of_the_nearest_language_or_the_fallback(
    language: str, question: str, purpose: str, answers: str
) -> None:
    """English if it is there, else the first language: the same for everybody."""
    collection = parse_definition(SPOKEN)
    shown = notice(collection, language=language)
    text = shown.texts()[0].text

    assert shown.question == question
    assert text.startswith(f"{purpose}. Possible answers: {answers}.")
    assert collection.describe_message(b"\0", language) == answers.split(", ", maxsplit=1)[0]


def test_attributes_keep_their_labels_and_the_answer_has_those_of_the_language() -> None:
    crossed = parse_definition(SPOKEN + '\ncross = {plan = ["free", "paid"]}')

    assert "plan (free, paid)" in notice(crossed, language="de").texts()[0].text
    assert crossed.describe_message(b"\3", "de") == "('hell', 'free') or ('hell', 'paid')"


@pytest.mark.parametrize(
    ("lines", "key"),
    [
        ('boolean = true\nlabels = {de = ["nein", "ja"]}', "labels.de"),
        ('range = [0, 9]\nmeasure = "mean"\nlabels = {de = ["nein", "ja"]}', "labels.de"),
        ('values = ["a", "b"]\nlabels = {de = ["eins"]}', "labels.de"),
        ('values = ["a", "b"]\nlabels = {de = ["eins", "eins"]}', "labels.de"),
        ('values = ["a", "b"]\nlabels = {de = [1, 2]}', "labels.de"),
        ('values = ["a", "b"]\nlabels = ["eins", "zwei"]', "labels"),
        ('values = ["a", "b"]\nlabels = {german = ["eins", "zwei"]}', "question"),
        ("boolean = true\nquestion = {}", "question"),
        ('boolean = true\nquestion = {de = ""}', "question"),
        ('boolean = true\nquestion = {de = "Ist es?", en = "Is\\nit?"}', "question"),
        ("boolean = true\npurpose = {de = 1}", "purpose.de"),
    ],
)
def test_what_cannot_be_read_is_refused(lines: str, key: str) -> None:
    assert refused(definition_file(lines)).key.startswith(key)
