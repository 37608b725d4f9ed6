"""Who a person is: the spellings of one id are one person, and nobody is nobody."""

from __future__ import annotations

import logging
from decimal import Decimal
from enum import IntEnum, StrEnum
from pathlib import Path
from typing import Any
from uuid import UUID

import numpy as np
import pytest

from veilcount_client import NotAPerson, NotUsable
from veilcount_client.recording.person_id import person_name

from ..device_fixtures import Device, one_collection

ID = UUID("00112233-4455-6677-8899-aabbccddeeff")


class Text(StrEnum):
    SEVEN = "7"


class Number(IntEnum):
    SEVEN = 7


class User:
    """An account as an ORM has it: its text names its address in memory."""


@pytest.mark.parametrize(
    ("name", "spellings"),
    [
        ("7", [7, "7", b"7", Text.SEVEN, Number.SEVEN]),
        ("0", [0, "0", b"0"]),
        (str(ID), [ID, str(ID), str(ID).upper(), str(ID).encode()]),
        (str(ID), [ID.hex, f"{{{ID}}}", ID.urn, ID.hex.upper().encode()]),
        ("añb", ["añb", "añb".encode()]),
        ("guest:7", ["guest:7"]),
    ],
)
def test_the_spellings_of_one_id_are_one_person(name: str, spellings: list[object]) -> None:
    """ORMs, sessions and caches differ in them."""
    assert {person_name(each) for each in spellings} == {name}


def test_bytes_that_are_no_text_are_persons_of_their_own() -> None:
    names = [person_name(each) for each in (b"\xff", b"\xfe", b"\xff\xff")]

    assert len(set(names)) == 3
    assert all(name.encode(errors="surrogatepass") for name in names)


NOBODY = [
    *(None, "", "  ", b"", "None", "NULL", "undefined", "Anonymous", b"null", True, False),
    *(1.5, Decimal(7), User(), np.int64(7), ("a",), ["a"]),
]


@pytest.mark.parametrize("person", NOBODY, ids=lambda each: type(each).__name__)
def test_nobody_records_nothing_and_has_no_question(
    tmp_path: Path, person: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """All visitors without a login once shared one consent; a web view must not crash on them."""
    device = Device(tmp_path, one_collection("it"), persons=True)
    with caplog.at_level(logging.WARNING, "veilcount"):
        for _ in range(2):
            nobody = device.client.person(person)
            nobody.consent(True)
            nobody.record("it", True)
            nobody.forget()
    device.work()

    assert (nobody.must_ask, nobody.consented, nobody.unasked(), nobody.rows()) == (
        False, None, [], [],
    )  # fmt: skip
    assert device.state.consenting() == []
    assert caplog.text.count("veilcount, person") == 1
    assert nobody.receipt().problem
    assert "person: " in str(nobody.explain("it"))


@pytest.mark.parametrize("person", NOBODY, ids=lambda each: type(each).__name__)
def test_strict_raises_on_nobody_and_names_the_fix(tmp_path: Path, person: Any) -> None:
    device = Device(tmp_path, one_collection("it"), persons=True, strict=True)

    with pytest.raises(NotAPerson, match="give the account's id, as a str, an int, bytes or a"):
        device.client.person(person)


CALLS = {
    "record": ("it", True),
    "consent": (True,),
    "must_ask": None,
    "unasked": (),
    "rows": (),
    "forget": (),
    "receipt": (),
}


@pytest.mark.parametrize("call", CALLS)
def test_a_client_of_many_is_no_person_itself(
    tmp_path: Path, call: str, caplog: pytest.LogCaptureFixture
) -> None:
    """It once counted every user as one person."""
    lenient = Device(tmp_path / "lenient", one_collection("it"), persons=True)
    strict = Device(tmp_path / "strict", one_collection("it"), persons=True, strict=True)

    def use(device: Device) -> None:
        method = getattr(device.client, call)
        if arguments := CALLS[call]:
            method(*arguments)
        elif arguments is not None:
            method()

    with caplog.at_level(logging.WARNING, "veilcount"):
        for _ in range(2):
            use(lenient)
    with pytest.raises(NotUsable, match=rf"use client\.person\(id\)\.{call}"):
        use(strict)
    assert lenient.state.consenting() == []
    assert caplog.text.count(f"{call} on the client itself would take all users") == 2  # once each
