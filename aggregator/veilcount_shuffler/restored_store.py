"""A store that was restored from a backup: what it still held is lost, and says so."""

from __future__ import annotations

from veilcount_shared.shuffling.batch_record import BatchState

from .errors import ShufflerError
from .hand_over import HandOver
from .served_crowds import crowds_of
from .store_settings import StoreSettings


def check_witness(settings: StoreSettings, hand_over: HandOver) -> None:
    """Refuse a store that knows less than its witness, once its crowds are recorded as lost.

    Those that are open in it may have left already; with fresh covers they would leave twice.
    """
    with hand_over.store.alone():
        _check_witness(settings, hand_over)


def _check_witness(settings: StoreSettings, hand_over: HandOver) -> None:
    states = hand_over.states
    unknown = hand_over.store.witness.unknown_to(states)
    if not unknown:
        return
    served = {crowd.crowd_id: crowd for crowd in crowds_of(settings)}
    unfinished = [row.crowd_id for row in states.rows() if row.outcome is None]
    lost = list(dict.fromkeys([*unfinished, *unknown]))  # the witness's last: it shows what is left
    for crowd_id in lost:
        if states.state(crowd_id) is None:
            if crowd_id not in served:
                raise ShufflerError("the witness has a crowd of other definitions: load them first")
            hand_over.store.open_row(served[crowd_id])
        hand_over.end(crowd_id, BatchState.LOST)
    raise ShufflerError(
        f"the store knows less than its witness: it was restored, and {len(lost)} crowds are"
        " recorded as lost. None of them will be handed over; start it again"
    )
