"""Definitions whose reports travel by shuffler: what is refused, by name, and what is written."""

from __future__ import annotations

from fractions import Fraction

import pytest

from veilcount_shared.collection import Collection, Linkage, Presence, batches
from veilcount_shared.collection.compiled import parse_compiled
from veilcount_shared.collection.lint import lint
from veilcount_shared.compilation import compile_collections
from veilcount_shared.definition_record import BatchRules
from veilcount_shared.errors import DefinitionError
from veilcount_shared.models import shuffled
from veilcount_shared.models.local import Local
from veilcount_shared.periods import Unit

from .definition_harness import parse_definition

BOOLEAN = "boolean = true"
MIXED = f'{BOOLEAN}\nmodel = "shuffled"\nepsilon = 4'
PROMISE = "epsilon = 1, delta = 1e-6, covers = 110"
NUMBER = f'range = [0, 9]\nmeasure = "mean"\nmodel = "shuffled"\nbatch = {{{PROMISE}}}\nepsilon = 4'
LOCAL = f"{BOOLEAN}\nbatch = {{}}"
TOKEN = f'linkage = "token"\ntokens = "{"a" * 64}"\nanswers = 3'


def mixed(rules: str = PROMISE, more: str = "") -> str:
    """Return the lines of a shuffled definition."""
    return f"{MIXED}\nbatch = {{{rules}}}\n{more}"


def promise(**rules: object) -> str:
    """Return the rules of a batch, some of them replaced."""
    fields = {"epsilon": "1", "delta": "1e-6", "covers": "110", **rules}
    return ", ".join(f"{key} = {value}" for key, value in fields.items() if value is not None)


#: lines, the key that is named, words of the way out, and lines that take it
REFUSED: list[tuple[str, str, str, str]] = [
    # the table
    (f"{BOOLEAN}\nbatch = 5", "batch", "give a table: batch = {least = 1000", LOCAL),
    (f"{BOOLEAN}\nbatch = {{most = 5}}", "batch.most", "unknown key: give least, grace", LOCAL),
    *(
        (f"{BOOLEAN}\nbatch = {{{key} = {value}}}", f"batch.{key}", "give a whole number", LOCAL)
        for key in ("least", "grace")
        for value in ("true", "1.5", '"2"', "[]")
    ),
    *(
        (mixed(promise(covers=each)), "batch.covers", "whole number", mixed())
        for each in ("1.0", '""')
    ),
    (mixed(promise(honest="false")), "batch.honest", "whole number", mixed(promise(honest=500))),
    (mixed(promise(epsilon='"1"')), "batch.epsilon", "give a", mixed()),
    (mixed(promise(allow_large_epsilon=1)), "batch.allow_large_epsilon", "true or false", mixed()),
    # the models
    (f'{BOOLEAN}\nmodel = "central"\nbatch = {{}}', "batch", "no shuffler can be between", LOCAL),
    (MIXED, "batch", "`veilcount plan --trust shuffled` writes it", mixed()),
    *(
        (f"{BOOLEAN}\nbatch = {{{key} = {value}}}", f"batch.{key}", "least and grace alone", LOCAL)
        for key, value in (("epsilon", 1), ("delta", "1e-6"), ("covers", 9), ("honest", 9))
    ),
    (
        f"{BOOLEAN}\nbatch = {{allow_large_epsilon = true}}",
        "batch.allow_large_epsilon",
        '"shuffled"',
        LOCAL,
    ),
    # sizes
    *(
        (f"{BOOLEAN}\nbatch = {{least = {n}}}", "batch.least", "give 2 to", LOCAL)
        for n in (-1, 0, 1)
    ),
    (f"{BOOLEAN}\nbatch = {{least = 100000001}}", "batch.least", "to 100,000,000", LOCAL),
    (mixed(promise(least=99)), "batch.least", "give 100 to", mixed(promise(least=100))),
    *(
        (f"{BOOLEAN}\nbatch = {{grace = {n}}}", "batch.grace", "1 to 60 days", LOCAL)
        for n in (0, 61)
    ),
    *((mixed(promise(covers=n)), "batch.covers", "says how many", mixed()) for n in (0, 1_000_001)),
    (mixed(promise(covers=None)), "batch.covers", "`veilcount plan --trust shuffled`", mixed()),
    *((mixed(promise(honest=n)), "batch.honest", "give 1 to 1,000", mixed()) for n in (0, 1001)),
    # the promise
    *(
        (mixed(promise(epsilon=e)), "batch.epsilon", "below that of a report, 4", mixed())
        for e in (0, 4, 5, None)
    ),
    *(
        (mixed(promise(delta=d)), "batch.delta", "1e-12 to 0.001", mixed())
        for d in ("0", "0.01", "1e-13", None)
    ),
    (
        mixed().replace("epsilon = 4", "epsilon = 4.1"),
        *("epsilon", "4 at most, or batch.allow_large_epsilon = true"),
        mixed(promise(allow_large_epsilon="true")).replace("epsilon = 4", "epsilon = 4.1"),
    ),
    # what a shuffler could not hide, or not once only
    *(
        (f'{lines}\nunit = "event"', "unit", '"day" or longer', f'{lines}\nunit = "day"')
        for lines in (LOCAL, mixed())
    ),
    (f'{LOCAL}\nunit = "event"\nper_day = 2', "unit", "one report a batch", LOCAL),
    (
        f'{LOCAL}\nsegments = {{arm = ["A", "B"]}}',
        "segments",
        "cross them instead",
        f'{LOCAL}\ncross = {{arm = ["A", "B"]}}',
    ),
    (
        f'{LOCAL}\nmeasure = "trend"\nchanges = 1\nlinkage = "collection"',
        "measure",
        "remove batch",
        f'{BOOLEAN}\nmeasure = "trend"\nchanges = 1',
    ),
    (
        f'{LOCAL}\nunit = "week"\ntakes = "returning"\nlinkage = "none"',
        "takes",
        "in two batches",
        f'{BOOLEAN}\nunit = "week"\ntakes = "returning"',
    ),
    (f"{LOCAL}\nlate = 3", "late", "after its grace: remove late", LOCAL),
    *(
        (f'{LOCAL}\nlinkage = "{each}"', "linkage", '"none" or "token"', f"{LOCAL}\n{TOKEN}")
        for each in ("period", "collection")
    ),
    (mixed(more=TOKEN), "linkage", 'remove it, or write "none"', mixed(more='linkage = "none"')),
    (
        NUMBER,
        "presence",
        'write presence = "public", and the shuffler sees',
        f'{NUMBER}\npresence = "public"',
    ),
]


@pytest.mark.parametrize(("lines", "key", "fix", "way_out"), REFUSED)
def test_a_refusal_names_the_key_and_a_way_out_that_is_accepted(
    lines: str, key: str, fix: str, way_out: str
) -> None:
    with pytest.raises(DefinitionError) as error:
        parse_definition(lines)

    assert error.value.key == key
    assert fix in error.value.fix
    assert parse_definition(way_out).name == "q"


def test_a_paired_collection_is_refused() -> None:
    with pytest.raises(DefinitionError, match="twins must travel alike: remove it"):
        parse_definition(f'{LOCAL}\ntwin = "p"')


def test_a_message_that_is_too_wide_for_a_sealed_report_is_refused() -> None:
    wide, narrow = (f"values = {list(range(n))}\nbatch = {{}}\nepsilon = 0.1" for n in (2000, 20))

    assert parse_definition(narrow).message_bytes <= 175
    with pytest.raises(DefinitionError, match="175 at most in a batch: give fewer values"):
        batches.check_message_width(176, with_token=False)
    with pytest.raises(DefinitionError, match="223 at most"):
        batches.check_message_width(224, with_token=True)
    batches.check_message_width(max(175, parse_definition(wide).message_bytes), with_token=False)


@pytest.mark.parametrize(
    ("owner", "name", "count"),
    [
        (batches, "_refusals", 8),
        (shuffled, "_check_promise", 9),
        (shuffled.Shuffled, "check_batch", 5),
        (Local, "check_batch", 5),
    ],
)
def test_a_rule_that_is_left_out_is_detected(
    owner: object, name: str, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Planted: definitions that it alone refuses are accepted."""
    monkeypatch.setattr(owner, name, lambda *_: [])

    assert sum(map(is_accepted, {row[0] for row in REFUSED})) >= count


def is_accepted(lines: str) -> bool:
    """Whether the lines define a collection."""
    try:
        parse_definition(lines)
    except DefinitionError:
        return False
    return True


# -- advice ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("lines", "keys"),
    [
        (mixed(promise(least=1000)), {"epsilon": "48 to shuffler and server together: above 10"}),
        (mixed(more="answers = 1"), {}),
        (mixed(more='answers = 1\npresence = "public"'), {"presence": "hidden presence hides it"}),
        (f'{NUMBER}\nanswers = 1\npresence = "public"', {}),
        (f"{LOCAL}\nanswers = 1", {"presence": "in which periods a device had an answer"}),
        (f"{BOOLEAN}\nanswers = 1", {}),
    ],
)
def test_advice_is_about_what_a_shuffler_sees(lines: str, keys: dict[str, str]) -> None:
    remarks = {remark.key: remark.text for remark in lint(parse_definition(lines))}

    assert remarks.keys() == keys.keys()
    assert all(text in remarks[key] for key, text in keys.items())


# -- defaults and forms ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("lines", "rules"),
    [
        (LOCAL, BatchRules(least=50, grace=14)),
        (f'{LOCAL}\nunit = "day"', BatchRules(least=50, grace=3)),
        (f'{LOCAL}\nunit = "week"', BatchRules(least=50, grace=7)),
        (f'{LOCAL}\nunit = "user"', BatchRules(least=50, grace=14)),
        (f"{BOOLEAN}\nbatch = {{least = 2, grace = 60}}", BatchRules(least=2, grace=60)),
        (
            mixed(),
            BatchRules(
                least=1000, grace=14, covers=110, epsilon=Fraction(1), delta=Fraction(1, 10**6)
            ),
        ),
    ],
)
def test_the_rules_of_a_batch_have_defaults_of_the_model_and_the_unit(
    lines: str, rules: BatchRules
) -> None:
    collection = parse_definition(lines)

    assert collection.batch == rules
    assert (collection.linkage, collection.late) == (Linkage.NONE, 0)


def test_a_shuffled_collection_hides_who_had_an_answer_where_its_kind_can() -> None:
    assert parse_definition(mixed()).presence is Presence.HIDDEN
    assert parse_definition(mixed(more='presence = "public"')).presence is Presence.PUBLIC
    assert parse_definition(LOCAL).presence is Presence.PUBLIC


@pytest.mark.parametrize(
    "lines",
    [
        *(
            mixed(promise(honest=500, grace=5, allow_large_epsilon=each))
            for each in ("true", "false")
        ),
        *(f'{NUMBER}\npresence = "public"', LOCAL, f"{LOCAL}\n{TOKEN}"),
        *(f'{LOCAL}\nunit = "{unit}"' for unit in Unit if unit is not Unit.EVENT),
        f'{LOCAL}\ntakes = "any"\nheld = "device"',
    ],
)
def test_compiled_and_read_back_it_is_the_same_definition(lines: str) -> None:
    collection = parse_definition(lines)
    [again] = parse_compiled(compile_collections([collection])).values()

    assert again == collection
    assert again.fingerprint == collection.fingerprint


def test_a_compiled_batch_that_is_left_out_is_detected(monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: it would travel alone, under the fingerprint of a batch."""
    text = compile_collections([parse_definition(LOCAL)])
    monkeypatch.setattr(Collection, "fingerprint", "0" * 64)

    with pytest.raises(DefinitionError):
        parse_compiled(text)
