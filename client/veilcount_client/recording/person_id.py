"""Ids of persons: what an app may name a person by, and which spellings are one person.

ORMs, sessions and caches give one id back as a number, as text or as bytes. Ids are one space in an
app: two kinds of accounts need a prefix, such as f"guest:{id}".
"""

from __future__ import annotations

import re
from uuid import UUID

from ..errors import NotAPerson

SELF = ""  # the one person of a client without persons
NOBODY = frozenset({"none", "null", "undefined", "anonymous"})
LARGEST = 10**100  # of a number: no account's is larger
#: a UUID's text as it is printed, in braces, as a URN, or its 32 digits
_UUID = re.compile(r"\{?(urn:uuid:)?[0-9a-f]{8}(-?[0-9a-f]{4}){3}-?[0-9a-f]{12}\}?", re.IGNORECASE)
_FIX = "give the account's id, as a str, an int, bytes or a UUID"


def person_name(person: object) -> str:
    """Return the one spelling of a person's id; NotAPerson names what it is instead."""
    match person:
        case bool() | None:
            raise NotAPerson(f"{person} is nobody: {_FIX}, once the person is logged in")
        case str():
            name = str.__str__(person)
        case int():
            if abs(person) >= LARGEST:
                raise NotAPerson(f"a number of more than 100 digits is no id: {_FIX}")
            name = int.__repr__(person)
        case bytes():
            name = bytes.decode(person, errors="surrogateescape")
        case UUID():
            name = str(person)
        case _:
            raise NotAPerson(f"a {type(person).__name__} is no id: {_FIX}")
    if not name.strip():
        raise NotAPerson(f"an empty id is nobody: {_FIX}, once the person is logged in")
    if name.strip().lower() in NOBODY:
        raise NotAPerson(f"{name.strip()!r} is nobody: {_FIX}, once the person is logged in")
    return str(UUID(name)) if _UUID.fullmatch(name) else name
