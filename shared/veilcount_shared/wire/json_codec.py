"""Batches as JSON, for people, and the JSON document of verdicts.

No client sends JSON and no production intake reads it: `veilcount encode` and `decode`, the
development server and the testing kit translate it. Strict: every key once and known, whole numbers
only, base64url without padding, uniquely encoded.
"""

from __future__ import annotations

import binascii
import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NoReturn, TypeVar, get_type_hints

from ..errors import BadField, WireError, WrongLength
from ..report import Batch, Losses, Report
from ..verdict import UNKNOWN_VERDICT, Verdict
from .binary import encode_binary
from .version import VERSION, check_count, check_size, check_version

_BATCH_KEYS = {"version", "test", "losses", "reports", "padding"}
_BATCH_NEEDED = {"version", "reports"}
_TOKEN = "token"  # noqa: S105 - the key of a report that has one
_REPORT = {key: kind for key, kind in get_type_hints(Report).items() if key != _TOKEN}
_LOSSES = get_type_hints(Losses)
_VERDICTS = {str(verdict): verdict for verdict in Verdict}
_KINDS = {
    dict: "an object",
    list: "a list",
    str: "a string",
    int: "a whole number",
    bool: "true or false",
}
Kind = TypeVar("Kind")


def encode_json(batch: Batch) -> bytes:
    """Return a JSON body of a batch."""
    losses = batch.losses
    return _dump(
        {
            "version": VERSION,
            "test": batch.test,
            "losses": losses and _write(losses, sorted(_LOSSES)),
            "reports": [_write(report, _keys_of(report)) for report in batch.reports],
            "padding": "0" * batch.padding,
        }
    )


def decode_json(body: bytes) -> Batch:
    """Return the batch of a JSON body; raise WireError with the place if it is invalid."""
    fields = _expect("body", _load(body), dict)
    check_version(fields.get("version"))  # first: another version has other keys
    _check_keys("body", fields, _BATCH_KEYS, _BATCH_NEEDED)
    reports = _expect("reports", fields["reports"], list)
    check_count(len(reports))
    test = _expect("test", fields.get("test", False), bool)
    padding = _expect("padding", fields.get("padding", ""), str)
    if padding.strip("0"):
        raise BadField("padding", "only the digit 0")
    losses = fields.get("losses")
    return Batch(
        tuple(_report(f"reports[{place}]", report) for place, report in enumerate(reports)),
        None if losses is None else Losses(**_fields("losses", losses, _LOSSES)),
        test,
        len(padding),
    )


def json_to_binary(body: bytes) -> bytes:
    """Translate a JSON body to the binary body of the same batch."""
    return encode_binary(decode_json(body))


def encode_verdicts(verdicts: Iterable[str]) -> bytes:
    """Return the reply to a batch: one verdict a report, in its order."""
    return _dump({"verdicts": list(verdicts)})


def decode_verdicts(body: bytes, reports: int) -> tuple[str, ...]:
    """Return the verdicts of a reply to a number of reports; raise WireError if it is invalid.

    A verdict of a later release is `UNKNOWN_VERDICT`. Other members of the reply are ignored.
    """
    check_size(body)
    fields = _expect("body", _load(body, float), dict)
    _check_keys("body", fields, set(fields), {"verdicts"})
    words = _expect("verdicts", fields["verdicts"], list)
    if len(words) != reports:
        raise WrongLength("verdicts", f"{len(words)} for {reports} reports")
    return tuple(_verdict(f"verdicts[{place}]", word) for place, word in enumerate(words))


def _verdict(place: str, value: object) -> str:
    return _VERDICTS.get(_expect(place, value, str), UNKNOWN_VERDICT)


# -- JSON, strictly --------------------------------------------------------------------------------


def _dump(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":"), allow_nan=False).encode()


def _no_fraction(_: str) -> NoReturn:
    raise BadField("body", "only whole numbers")


def _load(body: bytes, parse_fraction: Callable[[str], object] = _no_fraction) -> object:
    try:
        return json.loads(
            body.decode(),
            object_pairs_hook=_unique,
            parse_float=parse_fraction,
            parse_constant=_no_fraction,
        )
    except WireError:
        raise
    except UnicodeDecodeError:
        problem = "not UTF-8"
    except (ValueError, RecursionError):  # also an integer of thousands of digits
        problem = "not JSON"
    raise BadField("body", problem)  # out here: the cause would carry the whole body along


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) != len(pairs):
        raise BadField("body", "a key is repeated in one object")
    return fields


def _expect(place: str, value: object, kind: type[Kind]) -> Kind:
    if type(value) is not kind:  # a bool is an int to isinstance
        raise BadField(place, f"give {_KINDS[kind]}")
    return value


def _check_keys(
    place: str, fields: dict[str, Any], known: set[str], needed: set[str] | None = None
) -> None:
    if fields.keys() - known:  # not quoted: a client's mistake may put a message there
        raise BadField(place, f"unknown key: known are {', '.join(sorted(known))}")
    if missing := (needed or known) - fields.keys():
        raise BadField(place, f"key {min(missing)!r} is missing")


def _fields(place: str, value: object, kinds: Mapping[str, type]) -> dict[str, Any]:
    """Return the fields of an object that has exactly these, each of its kind."""
    fields = _expect(place, value, dict)
    _check_keys(place, fields, set(kinds))
    return {key: _read(f"{place}.{key}", fields[key], kind) for key, kind in kinds.items()}


def _read(place: str, value: object, kind: type) -> object:
    return _bytes(place, value) if kind is bytes else _expect(place, value, kind)


def _keys_of(report: Report) -> list[str]:
    return [*_REPORT, _TOKEN] if report.token else list(_REPORT)


def _report(place: str, value: object) -> Report:
    has_token = isinstance(value, dict) and _TOKEN in value
    fields = _fields(place, value, _REPORT | {_TOKEN: bytes} if has_token else _REPORT)
    if has_token and not fields[_TOKEN]:
        raise WrongLength(f"{place}.{_TOKEN}", "it is empty: leave it out")
    try:
        return Report(**fields)
    except WireError as error:
        raise type(error)(f"{place}.{error.place}", error.problem) from error


def _write(record: Report | Losses, keys: Iterable[str]) -> dict[str, object]:
    values = {key: getattr(record, key) for key in keys}
    return {
        key: encode_base64(value) if isinstance(value, bytes) else value
        for key, value in values.items()
    }


def encode_base64(raw: bytes) -> str:
    """Return bytes as base64url without padding."""
    return urlsafe_b64encode(raw).rstrip(b"=").decode()


def _bytes(place: str, value: object) -> bytes:
    text = _expect(place, value, str)
    try:
        raw = urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except (binascii.Error, ValueError) as error:
        raise BadField(place, "give base64url without padding") from error
    if encode_base64(raw) != text:  # skipped characters, or bits that no byte holds
        raise BadField(place, "give base64url without padding")
    return raw
