"""A priced query: what a request asks of which periods, and its price.

`price_query` is pure and sees no data. Its result has all that a ledger needs: the canonical form
of the request, and the charge of each period. The true counts enter in `draw_release` alone.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, timedelta
from decimal import Decimal
from fractions import Fraction
from functools import cached_property

from veilcount_shared import Collection, periods
from veilcount_shared.epsilon import EPSILON_GRAIN, parse_epsilon
from veilcount_shared.errors import EpsilonError, InexactError
from veilcount_shared.schedule import period_end, period_start

from ..errors import QueryError
from ..series.series import publishes_n
from .noise_kinds import NoiseKind
from .price import Accounting, ReleaseCost, period_budget, threshold_delta
from .query import Query, QueryPart, parse_query
from .query_types.count_query import CountingQuery
from .sensitivity import person_contributions
from .zcdp import RHO_GRAIN

FIELDS = frozenset({"query", "epsilon", "rho", "from", "to"})

MOST_DIGITS = 20
_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")

#: written out: an exponent of nine letters would be a number of a gigabyte
_NUMBER = re.compile(r"[0-9]{1,20}(\.[0-9]{1,20})?")


@dataclass(frozen=True)
class PricedQuery:
    """A query of one collection, over whole periods, at an exact cost."""

    collection: Collection
    query: Query
    cost: ReleaseCost
    periods: range
    written_query: object = field(compare=False)  # as in the request, for people

    @cached_property
    def canonical(self) -> str:
        """The canonical form of the query: equal if and only if the meaning is."""
        gaussian = self.epsilon is None
        meaning = {
            "collection": self.collection.fingerprint,
            **({"rho": str(self.cost.amount)} if gaussian else {"epsilon": self.micro_epsilon}),
            "periods": [self.periods[0], self.periods[-1]],
            "query": self.query.canonical(),
        }
        return json.dumps(meaning, sort_keys=True, separators=(",", ":"))

    @property
    def epsilon(self) -> Fraction | None:
        """The epsilon of one unit; None: Gaussian noise."""
        return self.cost.epsilon

    @property
    def micro_epsilon(self) -> int:
        """Epsilon in millionths, a whole number; 0: Gaussian noise."""
        return int((self.epsilon or 0) * EPSILON_GRAIN)

    @property
    def rho(self) -> Fraction | None:
        """The rho of one unit; None: the budget is in epsilon."""
        return None if self.accounting is Accounting.EPSILON else self.cost.rho

    @property
    def accounting(self) -> Accounting:
        """The unit of the charges."""
        return Accounting.of_collection(self.collection)

    @property
    def charges(self) -> dict[int, int]:
        """What each period's budget pays, in grains of its unit.

        A unit lies in one period, so each period pays for its own units and none for another's.
        """
        return dict.fromkeys(self.periods, self.cost.charge(self.collection, self.periods))

    @property
    def requested(self) -> Fraction:
        """What each period's budget pays, in its unit."""
        return Fraction(self.charges[self.periods[0]], self.accounting.grain)

    @property
    def person_epsilon(self) -> Fraction | None:
        """What the release reveals of all units of one person: the plain sum; None: no epsilon."""
        return None if self.epsilon is None else self.epsilon * self.person_contributions

    @property
    def person_rho(self) -> Fraction | None:
        """The same in rho: it grows with the square of the units."""
        return None if self.rho is None else self.rho * self.person_contributions**2

    @property
    def person_contributions(self) -> int:
        """How many answers one person gives at most in its periods."""
        return person_contributions(self.collection, self.periods)

    @property
    def publishes_n(self) -> bool:
        """Whether the exact number of answers is public."""
        return publishes_n(self.collection)

    @property
    def threshold_delta(self) -> Fraction:
        """The part of the thresholds' delta that the release pays for with its part of a budget."""
        budget = period_budget(self.collection) * self.accounting.grain
        return threshold_delta(self.collection) * self.charges[self.periods[0]] / budget

    @property
    def sensitivity(self) -> int:
        """The L1 sensitivity of all that noise is added to (of a mean in two parts: of the sum)."""
        return self.parts[0].sensitivity

    @cached_property
    def parts(self) -> tuple[QueryPart, ...]:
        """What noise is added to."""
        return self.query.parts(self.collection)


def price_query(request: Mapping[str, object], collection: Collection) -> PricedQuery:
    """Return the priced query of a request, or refuse it with the field and the fix.

    `query` is needed, and `epsilon` for Laplace noise or `rho` for Gaussian; `from` and `to` are
    the first and the last day of whole periods, by default the campaign's. The cost is an exact
    number: a JSON reader must not make a float of it.
    """
    if not collection.trust.releases:
        raise QueryError("collection", collection.name, "its model is local: read its estimate")
    unknown = sorted(set(map(str, request)) - FIELDS)
    if unknown:
        raise QueryError(unknown[0], request[unknown[0]], "unknown: remove it")
    query = parse_query(request.get("query"), collection)
    cost, wanted, chosen = (
        _cost(request, collection),
        request["query"],
        _periods(request, collection),
    )
    query = query.over(chosen, cost.noise, collection)
    if query.by_hash and cost.noise is not _threshold_noise(collection):
        fix = 'a budget in rho has Gaussian noise here: give rho, or declare noise = "laplace" anew'
        raise QueryError("epsilon", request.get("epsilon"), fix)
    question = PricedQuery(collection, query, cost, chosen, wanted)
    if question.publishes_n and query == CountingQuery.count_all(collection):
        raise QueryError("query", wanted, "this number is public here: it costs nothing")
    return question


def first_period_query(
    collection: Collection, query: object, rho: Fraction | None = None
) -> PricedQuery:
    """Return a query of the first period, by default at all of its budget: what can be planned.

    A period pays as many times the rho as a person gives answers in it, squared.
    """
    last = period_end(collection, 0).date() - timedelta(days=1)
    days = {"from": collection.start, "to": last}
    if rho is None and Accounting.of_collection(collection) is Accounting.EPSILON:
        return price_query({"query": query, "epsilon": collection.unit_epsilon, **days}, collection)
    answers = person_contributions(collection, range(1)) * collection.per_day
    most = Fraction(period_budget(collection) * RHO_GRAIN // answers, RHO_GRAIN)
    return price_query({"query": query, "rho": most if rho is None else rho, **days}, collection)


def _cost(request: Mapping[str, object], collection: Collection) -> ReleaseCost:
    epsilon, rho = request.get("epsilon"), request.get("rho")
    if rho is None:
        return ReleaseCost(NoiseKind.LAPLACE, _epsilon(epsilon, collection))
    if epsilon is not None:
        fix = "give either: epsilon for Laplace noise, or rho for Gaussian"
        raise QueryError("rho", rho, fix)
    return ReleaseCost(NoiseKind.GAUSSIAN, _rho(rho, collection))


def _threshold_noise(collection: Collection) -> NoiseKind:
    """Return the noise under which strings pass a threshold, by the unit of the budget."""
    in_rho = Accounting.of_collection(collection) is Accounting.RHO
    return NoiseKind.GAUSSIAN if in_rho else NoiseKind.LAPLACE


def _rho(value: object, collection: Collection) -> Fraction:
    if collection.noise is not None:
        raise QueryError("rho", value, f'noise = "{collection.noise}" is paid in epsilon: give it')
    if collection.delta is None:
        raise QueryError(
            "rho",
            value,
            "Gaussian noise is not epsilon-DP for any epsilon, so this budget in epsilon cannot pay"
            " for it: give epsilon, or declare delta in a new definition",
        )
    rho = Fraction(_exactly("rho", value))
    if RHO_GRAIN % rho.denominator or rho <= 0:
        raise QueryError("rho", value, "give a number above 0 with at most twelve decimals")
    if rho > (most := period_budget(collection)):
        raise QueryError("rho", value, f"a period's whole budget is {float(most):.6g}")
    return rho


def _epsilon(value: object, collection: Collection) -> Fraction:
    if value is None:
        raise QueryError("epsilon", None, 'give a number, such as "0.1"')
    try:
        epsilon = parse_epsilon(_exactly("epsilon", value))
    except EpsilonError as error:
        raise QueryError("epsilon", value, error.fix) from error
    except InexactError as error:
        raise QueryError("epsilon", value, 'give an exact number, such as "0.1"') from error
    if epsilon > collection.unit_epsilon:
        most = collection.unit_epsilon
        raise QueryError("epsilon", epsilon, f"a period's whole budget is {float(most):g}")
    return epsilon


def _exactly(field: str, value: object) -> int | str | Fraction:
    if isinstance(value, Decimal):
        # 1E-7 is written out; what would be a gigabyte written out is not
        value = f"{value:f}" if abs(value.adjusted()) <= MOST_DIGITS else f"{value}"
    short = not isinstance(value, str) or _NUMBER.fullmatch(value)
    if not (short and isinstance(value, int | str | Fraction)):
        raise QueryError(field, value, 'give an exact number, such as "0.1"')
    return value


def _periods(request: Mapping[str, object], collection: Collection) -> range:
    start, last_day = collection.start, collection.until - timedelta(days=1)
    first = _period("from", request.get("from"), start, collection)
    last = _period("to", request.get("to"), last_day, collection)
    if last < first:
        raise QueryError("to", request.get("to"), f"give a day after from = {request.get('from')}")
    return range(first, last + 1)


def _period(field: str, value: object, default: date, collection: Collection) -> int:
    """Return the period that begins (from) or ends (to) on a day, or refuse the day."""
    day = default if value is None else _day(field, value)
    if not collection.start <= day < collection.until:
        last = collection.until - timedelta(days=1)
        raise QueryError(field, value, f"give a day from {collection.start} to {last}")
    period = periods.period_number(collection.unit, collection.start, day)
    ends = {
        "from": period_start(collection, period).date(),
        "to": period_end(collection, period).date() - timedelta(days=1),
    }
    if day != ends[field]:
        raise QueryError(
            field,
            value,
            f"a release covers whole periods: this one is {ends['from']} to {ends['to']}",
        )
    return period


def _day(field: str, value: object) -> date:
    try:
        if isinstance(value, str) and _DAY.fullmatch(value):
            return date.fromisoformat(value)
    except ValueError as error:
        raise QueryError(field, value, "there is no such day") from error
    if type(value) is date:
        return value
    raise QueryError(field, value, 'give a day, such as "2026-12-01"')
