"""Each question has one kind, looked up without a default."""

from __future__ import annotations

from fractions import Fraction
from typing import get_args

import pytest

from veilcount_shared.domain import Boolean, Choice, Domain, Number
from veilcount_shared.enums import Measure, Model
from veilcount_shared.errors import DefinitionError
from veilcount_shared.kinds import KINDS, Price, kind_of
from veilcount_shared.models import TRUST_MODELS

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


def test_a_curator_has_a_price_of_its_own() -> None:
    """Whoever randomizes pays epsilon for each answer, with a shuffler or without."""
    prices = {model: trust.price_key for model, trust in TRUST_MODELS.items()}

    assert prices == {Model.LOCAL: "epsilon", Model.SHUFFLED: "epsilon", Model.CENTRAL: "budget"}
