"""`veilcount encode` and `decode`: JSON and what a device sends become each other."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from unittest.mock import Mock

import pytest

from veilcount_aggregator.operate.cli.main import run
from veilcount_shared.report import Batch, Report
from veilcount_shared.wire import BINARY_TYPE, decode_json, encode_binary, encode_json

from .conftest import Type

BATCH = Batch((Report("ab" * 32, 1, 0, bytes(range(240, 256)), 2, b"\xff"),), padding=9)


def test_a_batch_is_encoded_from_a_file_or_stdin_to_the_bytes_of_the_wire(
    capfdbinary: pytest.CaptureFixture[bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "batch.json"
    file.write_bytes(encode_json(BATCH))
    monkeypatch.setattr(sys, "stdin", Mock(buffer=io.BytesIO(encode_json(BATCH))))

    assert run(["encode", str(file)]) == run(["encode"]) == 0
    assert capfdbinary.readouterr().out == encode_binary(BATCH) * 2


def test_a_batch_is_decoded_to_json_that_encodes_to_the_same(typed: Type, tmp_path: Path) -> None:
    file = tmp_path / "batch"
    file.write_bytes(encode_binary(BATCH))
    for decoded in (typed("decode", str(file)), typed("decode", str(file), "--json")):
        assert decode_json(decoded.out.encode()) == BATCH
    file.write_text(decoded.out)

    assert typed("encode", str(file), "--json").json == {
        "content_type": BINARY_TYPE,
        "hexadecimal": encode_binary(BATCH).hex(),
    }


def test_what_is_no_batch_is_refused_with_its_place_however_many_reports_it_has(
    typed: Type, tmp_path: Path
) -> None:
    file = tmp_path / "batch"
    file.write_bytes(encode_binary(Batch(BATCH.reports * 500))[:-3])
    decoded = typed("decode", str(file))
    file.write_bytes(b"{}")
    encoded = typed("encode", str(file))

    assert (decoded.code, encoded.code) == (2, 2)
    assert decoded.err.startswith("veilcount: reports[499].message: the body ends at byte ")
    assert encoded.err.startswith("veilcount: version: this aggregator supports version 1")
