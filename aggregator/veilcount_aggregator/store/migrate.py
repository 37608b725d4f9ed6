"""Migration of a store to another, of any engine: made read-only, copied, compared.

The source becomes read-only before the first piece is read, and stays so: its record has the place
where its reports belong from now on. The target records the progress, so that an interrupted copy
is resumed by the next call. A ticket, one for both sides, distinguishes a copy that may be resumed
from any other store: a source that has taken reports meanwhile has another ticket. Whatever is
refused is refused before the source becomes read-only. One process at a time copies into a store.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace

from ..errors import StoreReadOnly, StoreUnfit
from .copy_lease import CopyLease
from .interface import Record, RecordStore, Store, TransferPiece, TransferStore
from .records import update_records
from .transfer_format import content_digest, join_key

KIND = "copy"
TO, FROM, RUN = "to", "from", "run"

#: what is carried in one step
STEP_PIECES = 256
STEP_BYTES = 4 << 20


@dataclass(frozen=True, slots=True)
class OutgoingCopy:
    """The source's record of its copy."""

    ticket: str
    where: str


@dataclass(frozen=True, slots=True)
class IncomingCopy:
    """The target's record of the copy."""

    ticket: str
    pieces: int = 0
    done: bool = False


@dataclass(frozen=True, slots=True)
class CopyProgress:
    """How much of a copy is done."""

    pieces: int
    bytes: int


def copy_store(
    source: Store,
    target: Store,
    *,
    where: str,
    progress: Callable[[CopyProgress], None] = lambda _: None,
) -> str:
    """Copy a store into a new one, or go on with it; return the digest that both have.

    `where` is the target's name for people: the source keeps it, and it carries no password.
    """
    _begun(source, target, where)  # before anything is written to what may be another store
    lease = CopyLease(target, KIND, RUN)
    with lease.held():
        incoming, outgoing = _begun(source, target, where)
        if incoming is None:
            incoming = IncomingCopy((outgoing or _make_read_only(source, where)).ticket)
            _keep(lease, incoming)
        _carry(source, target, lease, incoming, progress)
        source_digest = content_digest(_carried(source))
        if source_digest != content_digest(_carried(target)):
            raise StoreUnfit("the copy differs from its source: begin again with an empty target")
        _keep(lease, replace(incoming, done=True))
    return source_digest


def _begun(
    source: Store, target: Store, where: str
) -> tuple[IncomingCopy | None, OutgoingCopy | None]:
    """Return what both sides know of this copy; refuse one that cannot be begun or gone on with."""
    incoming, outgoing = _incoming_copy(target), _copy_of_read_only(source)
    if incoming is None:
        _refuse_other(target, outgoing, where)
    else:
        _refuse_again(incoming, outgoing)
    return incoming, outgoing


def outgoing_copy(source: RecordStore) -> OutgoingCopy | None:
    """Return where a store was copied to, or is being copied to; None: nowhere."""
    record = source.records(KIND).get(TO)
    return None if record is None else OutgoingCopy(**json.loads(record))


def _incoming_copy(target: RecordStore) -> IncomingCopy | None:
    record = target.records(KIND).get(FROM)
    return None if record is None else IncomingCopy(**json.loads(record))


def _copy_of_read_only(source: Store) -> OutgoingCopy | None:
    """Return the copy that a source is read-only for; None: it is open."""
    if not source.health().read_only:
        return None
    outgoing = outgoing_copy(source)
    if outgoing is None:
        raise StoreReadOnly("the source is read-only, by no copy: make it writable first")
    return outgoing


def _refuse_other(target: Store, kept: OutgoingCopy | None, where: str) -> None:
    """Refuse what would begin a copy in the wrong place."""
    if next(_carried(target), None) is not None:
        raise StoreUnfit("the target is not empty and not part of this copy: give a new store")
    if kept is not None and kept.where != where:
        raise StoreReadOnly(
            f"the source is read-only, and copied to {kept.where}: go on there, or make it writable"
        )


def _refuse_again(known: IncomingCopy, kept: OutgoingCopy | None) -> None:
    """Refuse what would go on with another copy."""
    if kept is None or known.ticket != kept.ticket:
        raise StoreUnfit(
            "the target holds another copy, or the source has taken reports since: give a new store"
        )
    if known.done:
        raise StoreUnfit(
            "the copy is complete already, and the target may have taken reports since"
        )


def _make_read_only(source: Store, where: str) -> OutgoingCopy:
    """Make a source read-only for a copy, unless another copy of it has begun meanwhile."""
    new_copy, seen = OutgoingCopy(secrets.token_hex(16), where), outgoing_copy(source)

    def decide() -> tuple[list[Record], None]:
        if outgoing_copy(source) != seen or source.health().read_only:
            raise StoreReadOnly("another copy of the source has just begun: wait for it")
        return [Record(KIND, TO, json.dumps(asdict(new_copy)).encode())], None

    update_records(source, decide)
    source.set_read_only(on=True)
    return new_copy


def _carry(
    source: Store,
    target: Store,
    lease: CopyLease,
    incoming: IncomingCopy,
    progress: Callable[[CopyProgress], None],
) -> None:
    """Carry what is not there yet, a step at a time; a step that is done twice changes nothing."""
    pieces = size = 0
    for step in _steps(_carried(source)):
        pieces, size = pieces + len(step), size + sum(len(piece.body) for piece in step)
        if pieces > incoming.pieces:
            target.import_pieces(step)
            _keep(lease, replace(incoming, pieces=pieces))
        progress(CopyProgress(pieces, size))


def _carried(store: TransferStore) -> Iterator[TransferPiece]:
    """Return all pieces but those that are about the copy itself."""
    own = {("record", join_key(KIND, key)) for key in (TO, FROM, RUN)}
    return (piece for piece in store.export_pieces() if (piece.kind, piece.key) not in own)


def _steps(pieces: Iterator[TransferPiece]) -> Iterator[list[TransferPiece]]:
    step: list[TransferPiece] = []
    size = 0
    for piece in pieces:
        step.append(piece)
        size += len(piece.body)
        if len(step) >= STEP_PIECES or size >= STEP_BYTES:
            yield step
            step, size = [], 0
    if step:
        yield step


def _keep(lease: CopyLease, what: IncomingCopy) -> None:
    value = json.dumps(asdict(what)).encode()
    lease.change(lambda: [Record(KIND, FROM, value)])
