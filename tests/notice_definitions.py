"""Definitions of every kind that people are asked about, each with an owner and a purpose."""

from __future__ import annotations

from datetime import timedelta

from veilcount_shared import Collection, parse_collections
from veilcount_shared.periods import Unit
from veilcount_shared.tokens import PublicKey, digest, encode_key, encode_key_list, key_list_name

OWNER, PURPOSE = "Ada Byron, ada@acme.example", "To decide <what> is built next"
MONTHS = 12
#: an issuer's public keys: numbers of their length, which nobody needs to sign with
KEYS = [encode_key(PublicKey((1 << 2047) + 2 * month + 1)) for month in range(MONTHS)]
KEY_FILES = {key_list_name(digest(KEYS)): encode_key_list(KEYS)}
TABLES = {
    "local": 'boolean = true\nunit = "month"\nanswers = 6',
    "once": 'values = ["light", "dark"]\nunit = "user"',
    "events": 'range = [0, 240]\nmeasure = "mean"\nunit = "event"\nper_day = 4\nanswers = 7',
    "trend": 'boolean = true\nunit = "month"\nmeasure = "trend"\nchanges = 3',
    "retention": 'boolean = true\nunit = "week"\ntakes = "returning"',
    "strings": 'values = "open"\nunit = "month"',
    "found": 'values = "open"\ndiscover = true\nunit = "month"',
    "moments": 'features = {age = [0, 120], hours = [0, 60]}\nmeasure = "moments"\nunit = "month"',
    "tables": 'questions = {theme = ["light", "dark"], walk = ["no", "yes"]}\ntables = true\n'
    'unit = "month"',
    "several": 'values = ["pen", "brush"]\nchoose = "several"\nunit = "month"',
    "at_most": 'values = ["pen", "brush", "crop"]\nchoose = "several"\nmost = 2\nunit = "month"',
    "hidden": 'boolean = true\nunit = "day"\npresence = "hidden"\nanswers = 9',
    "token": 'boolean = true\nunit = "month"\nanswers = 1\nlinkage = "token"\n'
    f'tokens = "{digest(KEYS)}"',
    "batched": 'boolean = true\nunit = "month"\nanswers = 1\nlinkage = "token"\n'
    f'tokens = "{digest(KEYS)}"\nbatch = {{}}',
    "shuffled_number": 'range = [0, 9]\nmeasure = "mean"\nunit = "month"\nmodel = "shuffled"\n'
    'presence = "public"\nbatch = {epsilon = 0.25, delta = 1e-6, covers = 900}',
    "held": 'boolean = true\nunit = "month"\ntakes = "any"\nheld = "device"',
    "cross": 'boolean = true\ncross = {plan = ["free", "paid"]}\nunit = "month"',
    "segments": 'boolean = true\nunit = "month"\nsegments = {arm = ["A", "B"]}',
    "shuffled": 'boolean = true\nunit = "month"\nmodel = "shuffled"\n'
    "batch = {epsilon = 0.25, delta = 1e-6, covers = 500}",
    "mixed": 'range = [0, 9]\nmeasure = "mean"\nunit = "month"\nbatch = {least = 100, grace = 7}',
    "removable": 'boolean = true\nunit = "month"\nmodel = "central"\nanswers = 3',
    "exchanged": 'boolean = true\nunit = "user"\nmodel = "central"\nadjacency = "substitute"',
}


def definitions_text() -> str:
    """Return a definitions file of all tables."""
    tables = [f"[{name}]\n{_table(lines)}" for name, lines in TABLES.items()]
    return "\n".join(['app = "acme"', *tables])


def _table(lines: str) -> str:
    price = "budget = 1" if "central" in lines else "epsilon = 0.5"
    return f"""
question = "What is it?"
owner = "{OWNER}"
purpose = "{PURPOSE}"
{price}
from = 2026-12-01
until = 2027-12-01
{lines}
"""


COLLECTIONS = parse_collections(definitions_text(), lambda _: [])

_FREQUENCY = {
    Unit.USER: "Once.",
    Unit.EVENT: "At most {} times a day",
    Unit.DAY: "At most once a day",
    Unit.WEEK: "At most once a week",
    Unit.MONTH: "At most once a month",
}


def frequency(collection: Collection) -> str:
    """Return how often a person answers at most, in words that are written here again."""
    often = _FREQUENCY[collection.unit].format(collection.per_day)
    if collection.answers is None:
        return often
    unit = "day" if collection.unit is Unit.EVENT else collection.unit
    of_the = f"{collection.answers} of the {collection.periods} {unit}s, drawn beforehand by chance"
    return f"{often}, {'on' if unit == 'day' else 'in'} {of_the}"


def last_day(collection: Collection) -> str:
    """Return the last day of a campaign."""
    return str(collection.until - timedelta(days=1))
