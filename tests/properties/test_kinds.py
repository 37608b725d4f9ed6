"""Each question has one kind, looked up without a default."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import get_args

import pytest

from veilcount_shared import SystemRandomSource
from veilcount_shared.domain import Boolean, Choice, Domain, Number
from veilcount_shared.enums import Measure, Model
from veilcount_shared.errors import DefinitionError
from veilcount_shared.kinds import KINDS, Price, kind_of
from veilcount_shared.models import TRUST_MODELS

from .definition_harness import parse_definition

AB = Choice(("a", "b"))
RANGE = Number(Fraction(0), Fraction(10))


@pytest.mark.parametrize("domain_type", get_args(Domain))
def test_every_domain_has_a_kind(domain_type: type[Domain]) -> None:
    assert domain_type in {row for row, _ in KINDS}


@pytest.mark.parametrize("measure", Measure)
def test_every_measure_has_a_kind(measure: Measure) -> None:
    assert measure in {row for _, row in KINDS}


@pytest.mark.parametrize("domain", [AB, Boolean()])
def test_a_pair_that_no_row_names_has_no_kind(domain: Domain) -> None:
    """It is not taken for values, which would estimate something else without a word."""
    with pytest.raises(DefinitionError, match="only for a range under the local model"):
        kind_of(domain, Measure.MEAN)


def test_an_unknown_domain_is_refused_by_name() -> None:
    class Stars:
        """A domain that no row has."""

    with pytest.raises(DefinitionError, match="no kind of question has Stars"):
        kind_of(Stars(), None)  # type: ignore[arg-type] # what the types forbid


def test_a_number_without_a_measure_has_no_mechanism() -> None:
    """A curator sees it; devices must know what is estimated."""
    price = Price(RANGE, RANGE.size, Fraction(1), periods=1, changes=None)

    with pytest.raises(TypeError, match="number: no measure"):
        kind_of(RANGE, None).randomizer(price)


#: a definition of each row, in the order of the registry
LINES = [
    'values = ["a", "b"]',
    "boolean = true",
    'boolean = true\ncross = {plan = ["free", "paid"]}',
    "range = [0, 10]",
    'range = [0, 10]\nmeasure = "mean"',
    'range = [0, 10]\nmeasure = "distribution"',
    'range = [0, 10]\nmeasure = "ranges"',
    'features = {age = [0, 120], hours = [0, 60]}\nmeasure = "moments"',
    'boolean = true\nmeasure = "trend"\nchanges = 3',
    'values = "open"',
]
PRICES = {Model.LOCAL: "epsilon = 1", Model.CENTRAL: "budget = 1\ndelta = 0.000001"}
ROWS = [*zip(KINDS, LINES, strict=True)]
RANDOMIZED = [row for row in ROWS if Model.LOCAL not in KINDS[row[0]].unsupported_models]


@pytest.mark.parametrize("model", Model)
@pytest.mark.parametrize(("row", "lines"), ROWS)
def test_a_kind_works_under_a_trust_model_or_is_refused_with_the_fix(
    row: tuple[type[Domain], Measure | None], lines: str, model: Model
) -> None:
    definition = f'{lines}\nmodel = "{model}"\n{PRICES[model]}'
    kind = KINDS[row]
    if model in kind.unsupported_models:
        key, fix = kind.unsupported_models[model]
        with pytest.raises(DefinitionError, match=re.escape(fix)) as caught:
            parse_definition(definition)

        assert caught.value.key == key
        return
    collection = parse_definition(definition)
    draw = collection.reveal if model is Model.CENTRAL else collection.randomize
    message = draw(None, SystemRandomSource()) if collection.kind.fresh else 0

    assert collection.kind is kind
    assert collection.unpack(collection.pack(message)) == message


@pytest.mark.parametrize(("row", "lines"), RANDOMIZED)
def test_only_messages_that_are_drawn_once_cost_epsilon_once(
    row: tuple[type[Domain], Measure | None], lines: str
) -> None:
    collection = parse_definition(f"{lines}\nepsilon = 1")
    answers = collection.periods if KINDS[row].fresh else 1

    assert answers == collection.epsilon_user == collection.priced_answers


@pytest.mark.parametrize("model", Model)
def test_every_trust_model_has_a_price_of_its_own(model: Model) -> None:
    others = {each.price_key for other, each in TRUST_MODELS.items() if other is not model}

    assert TRUST_MODELS[model].price_key not in others
