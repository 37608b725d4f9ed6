"""Compiles definitions: the facts and the sentences of each collection, as one JSON document."""

from __future__ import annotations

import json
from collections.abc import Iterable

from .collection import Collection
from .collection.compiled import COMPILED, compiled_facts
from .notice import RECEIPT, notice


def compile_collections(collections: Iterable[Collection]) -> str:
    """Return the compiled definitions of one app; its sentences are in English."""
    rows = [
        compiled_facts(collection)
        | {"notice": [[part.title, part.text] for part in notice(collection).texts()]}
        for collection in collections
    ]
    document = {"compiled": COMPILED, "collections": rows, "receipt": dict(RECEIPT)}
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"
