"""The shuffled model: each device adds noise, and a shuffler hides its report among covers.

Two promises, against two adversaries: the report's epsilon, whoever colludes; and the batch's, from
the covers alone, against a server whose shuffler keeps its word. Whether the covers suffice is
computed where there is an analysis: at `check`, at the server, and by the shuffler itself.
"""

from __future__ import annotations

from ..definition_record import BatchRules, Definition
from ..enums import Linkage
from ..errors import DefinitionError
from .central import LEAST_DELTA, MAX_DELTA
from .local import Local
from .model import BatchSizes

MAX_COVERS = 1_000_000
MOST_EPSILON = 4  # of a report, unless written out; at 5.5 it is true with probability .996


class Shuffled(Local):
    """Devices randomize and pay epsilon for each answer; the covers of its batch hide it."""

    batch_sizes = BatchSizes(least=100, default=1000)
    hides_presence = True

    def check(self, definition: Definition) -> None:
        """Require a batch whose covers keep a promise by themselves."""
        super().check(definition)
        rules = definition.batch
        if rules is None:
            fix = (
                "give batch = {epsilon = 1, delta = 1e-6, covers = ...}: `veilcount plan --trust"
                " shuffled` writes it"
            )
            raise DefinitionError("batch", None, fix)
        if definition.linkage is not Linkage.NONE:
            fix = 'a shuffler cannot hide what links reports: remove it, or write "none"'
            raise DefinitionError("linkage", str(definition.linkage), fix)
        _check_promise(definition, rules)

    def check_batch(self, rules: BatchRules) -> None:
        """Require a possible number of covers; the promise is checked with the price."""
        if not 1 <= rules.covers <= MAX_COVERS:
            fix = f"give 1 to {MAX_COVERS:,}: `veilcount plan --trust shuffled` says how many"
            raise DefinitionError("batch.covers", rules.covers, fix)
        if rules.honest is not None and not 1 <= rules.honest <= rules.least:
            fix = f"give 1 to {rules.least:,}, the least reports of a batch"
            raise DefinitionError("batch.honest", rules.honest, fix)


def _check_promise(definition: Definition, rules: BatchRules) -> None:
    own = definition.unit_epsilon
    if own > MOST_EPSILON and not rules.allow_large_epsilon:
        fix = (
            "a report's own epsilon is all that is left if shuffler and server collude: give"
            f" {MOST_EPSILON} at most, or batch.allow_large_epsilon = true"
        )
        raise DefinitionError("epsilon", own, fix)
    if rules.epsilon is None or not 0 < rules.epsilon < own:
        fix = f"give the epsilon against the server, below that of a report, {float(own):g}"
        raise DefinitionError("batch.epsilon", rules.epsilon, fix)
    if rules.delta is None or not LEAST_DELTA <= rules.delta <= MAX_DELTA:
        fix = "give 1e-12 to 0.001: below one in all persons"
        raise DefinitionError("batch.delta", rules.delta, fix)
