"""Counts that a warehouse has grouped, and open counters: figures as a server's, or a refusal."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from datetime import date
from typing import Any

import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from veilcount_analysis import tally
from veilcount_analysis.counts import (
    CountersSource,
    OpenCounters,
    counts_file,
    estimate_counters,
    join_open_counters,
    read_counts,
    read_open_counters,
)
from veilcount_analysis.errors import CountsError, QueryError
from veilcount_analysis.kinds.estimate_query import EstimateQuery
from veilcount_analysis.simulation import simulate_messages
from veilcount_shared import Collection, parse_collections
from veilcount_shared.collection import Model
from veilcount_shared.domain import OpenStrings
from veilcount_shared.wire import encode_base64

from ..client.device_fixtures import definitions_text
from .kinds.test_contract import LOCAL, define, reports, row_name

TODAY = date(2027, 2, 1)
ESTIMABLE = [row for row in LOCAL if row[0] is not OpenStrings]
DATED = "message,count,period\n"
YEAR = {"epsilon": 1, "unit": "month", "from": "2026-12-01", "until": "2027-12-01"}
THEMES = {"question": "Which?", "values": ["light", "dark", "system"]}
DEFINITIONS = definitions_text(
    "acme",
    YEAR,
    theme=THEMES | {"segments": {"arm": ["A", "B"], "level": [1, 2]}},
    plain=THEMES,
    lisa={"question": "Lisa?"},
    bart={"question": "Bart?"},
)
FAMILY = parse_collections(
    f'{DEFINITIONS}\n[group.both]\nquestions = ["lisa", "bart"]\n', lambda _: []
)


def dated_counts(collection: Collection) -> tuple[str, Any]:
    """Return a file of counts of one period, and the counters of its reports one by one."""
    messages = [message for message in reports(collection) for _ in range(37)]
    lines = (f"{message},{count},1" for message, count in Counter(messages).items())
    return DATED + "\n".join(lines), tally(collection, messages)


@pytest.mark.parametrize("row", ESTIMABLE, ids=row_name)
def test_grouped_counts_are_the_counters_of_their_reports(row: Any) -> None:
    collection = define(row)
    text, one_by_one = dated_counts(collection)
    source = read_counts(collection, text, TODAY)

    assert np.array_equal(source.tally(range(1, 2), [0]).counters, one_by_one)
    assert estimate_counters(source).ranges[-1].result.figures


def test_a_count_counts_in_all_of_its_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    """A million reports of a message count as many; planted: only the lowest bit is."""
    text = '{"0": 1000003, "1": 77}'

    def counted() -> list[int]:
        counters: list[int] = read_counts(FAMILY["plain"], text, TODAY).counters[0, 0].tolist()
        return counters

    assert counted() == [1_000_003, 77, 0]

    whole = counts_file.weighted_tally
    monkeypatch.setattr(
        counts_file, "weighted_tally", lambda c, m, n: whole(c, m, [number & 1 for number in n])
    )
    assert counted() != [1_000_003, 77, 0]


@pytest.mark.parametrize(
    "text",
    [
        "message,count,period,level,arm\n0x1,5,2027-01-31,2,B\n1,3,0,1,A\n",
        """[{"message": "0x1", "count": 5, "period": "2027-01-01", "arm": "B", "level": 2},
            {"message": 1, "count": "3", "period": 0, "arm": "A", "level": "1"}]""",
    ],
)
def test_columns_say_of_what_a_count_is(text: str) -> None:
    source = read_counts(FAMILY["theme"], f"\ufeff{text}", TODAY)

    assert {cell: counts.tolist() for cell, counts in source.counters.items()} == {
        (1, 3): [0, 5, 0],
        (0, 0): [0, 3, 0],
    }
    of_b = estimate_counters(source, EstimateQuery(segments=(("arm", "B"),)))
    assert of_b.ranges[0].result.n == 5


REFUSED = {
    "": 'counts = "": it is empty: give CSV',
    "{": 'counts = "{": it is no JSON: give CSV',
    "[]": 'counts = "[]": it has no rows',
    "[1]": 'counts = "[1]": it has no rows',
    '{"1": 2, "1": 3}': 'message = "1": it occurs twice: group by the message, once',
    '{"1": 2.5}': "row 1, count = 2.5: give how many reports have the message, a whole number",
    '{"1": true}': "row 1, count = true: give",
    '[{"message": 1, "count": 1}, {"message": 2}]': "row 2 = ",
    "message,number\n": 'column = "number": the columns are message, count, period, each once',
    "message\n1\n": 'columns = ["message"]: the column count is missing: add it',
    "message,count,count\n": 'column = "count": the columns are',
    "message,count\n1\n": 'row 1 = "1": give 2 cells, one for each of message, count',
    "message,count\n1,2\n1,3\n": 'row 2, message = "1": it occurs twice',
    "message,count\nred,2\n": 'row 1, message = "red": give message as a whole number, 123 or 0x7b',
    "message,count\n-1,2\n": 'row 1, message = "-1": give message as a whole number',
    "message,count\n3,2\n": 'row 1, message = "3": no device sends it under this definition',
    "message,count\n9999,2\n": 'row 1, message = "9999": no device sends it',
    "message,count\n1,-2\n": 'row 1, count = "-2": give how many reports',
    "message,count\n1,1e3\n": 'row 1, count = "1e3": give how many reports',
    "message,count\n1,9007199254740992\n": "count = 9007199254740992: give fewer than",
    f"{DATED}1,1,2027-02-30\n": 'row 1, period = "2027-02-30": give the number of a period that',
    f"{DATED}1,1,2026-11-30\n": 'row 1, period = "2026-11-30": give the number of a period that',
    f"{DATED}1,1,2027-03-01\n": 'row 1, period = "2027-03-01": give the number of a period that',
    f"{DATED}1,1,2028-01-01\n": 'row 1, period = "2028-01-01": give the number of a period that',
    f"{DATED}1,1,3\n": 'row 1, period = "3": give the number of a period that has begun, below 3',
}


@pytest.mark.parametrize(("text", "sentence"), REFUSED.items(), ids=lambda text: text[:30])
def test_wrong_counts_are_refused_by_field_value_and_fix(text: str, sentence: str) -> None:
    with pytest.raises(CountsError) as refused:
        read_counts(FAMILY["plain"], text, TODAY)

    assert str(refused.value).startswith(sentence)


@pytest.mark.parametrize(
    ("columns", "sentence"),
    [
        ("arm\n1,1,A", "the segment level is missing: group by all segments"),
        ("arm,level\n1,1,A,3", 'row 1, level = "3": give one of 1, 2'),
    ],
)
def test_segments_are_counted_all_or_none(columns: str, sentence: str) -> None:
    with pytest.raises(CountsError, match=sentence):
        read_counts(FAMILY["theme"], f"message,count,{columns}", TODAY)


@pytest.mark.parametrize(
    ("query", "sentence"),
    [
        ({"first": date(2026, 12, 1)}, "from = 2026-12-01: the counts have no column period"),
        ({"by": "month"}, 'by = "month": the counts have no column period'),
        ({"segments": (("arm", "A"),)}, 'segment = "arm:A": the counts are of all segments'),
    ],
)
def test_what_the_counts_do_not_distinguish_is_refused(
    query: Mapping[str, Any], sentence: str
) -> None:
    source = read_counts(FAMILY["theme"], '{"0": 9}', TODAY)

    with pytest.raises(QueryError, match=sentence):
        estimate_counters(source, EstimateQuery(**query))


@pytest.mark.parametrize(
    ("declared", "model", "sentence"),
    [
        ("boolean = true", Model.CENTRAL, "figures leave through releases alone"),
        ("boolean = true", Model.SHUFFLED, "counts do not say how many"),
        ('values = "open"', Model.LOCAL, "only a store does that"),
    ],
)
def test_counts_that_give_no_figures_are_refused(
    declared: str, model: Model, sentence: str
) -> None:
    row = next(row for row in LOCAL if row[0] is OpenStrings) if "open" in declared else LOCAL[1]

    with pytest.raises(CountsError, match=sentence):
        read_counts(define(row, model), '{"0": 1}', TODAY)


def test_a_trend_needs_its_periods() -> None:
    trend = define(next(row for row in LOCAL if row[1] == "trend"))

    with pytest.raises(CountsError, match="a trend is estimated from all of its periods"):
        read_counts(trend, '{"0": 1}', TODAY)


# -- open counters ---------------------------------------------------------------------------------


def published(collection: Collection, period: int = 0, *, by_segment: bool = True) -> OpenCounters:
    inputs = np.repeat(np.arange(collection.inputs), 500)
    cells = collection.cells if by_segment else 1
    counters = tuple(
        tally(collection, simulate_messages(collection, inputs, np.random.default_rng(cell)))
        for cell in range(cells)
    )
    group = collection.group
    related = [FAMILY[name] for name in group.questions if name != collection.name] if group else []
    return OpenCounters(collection, period, counters, by_segment, tuple(related))


def signed(file: OpenCounters, key: Ed25519PrivateKey) -> OpenCounters:
    return file.with_signature(key.sign(file.signed_message()))


def public(key: Ed25519PrivateKey) -> str:
    return encode_base64(key.public_key().public_bytes_raw())


@pytest.mark.parametrize("name", FAMILY)
def test_a_file_holds_all_that_a_stranger_needs(name: str) -> None:
    """Also of a member of a group, whose fingerprint depends on all members."""
    file = published(FAMILY[name])
    read = read_open_counters(file.encode())
    theirs = estimate_counters(join_open_counters([read]))
    ours = estimate_counters(
        CountersSource(
            join_open_counters([file]).series,
            {(0, cell): counters for cell, counters in enumerate(file.counters)},
            date(2027, 1, 1),
            last=date(2026, 12, 31),
        )
    )

    assert read.encode() == file.encode()
    assert theirs.ranges[0].result.figures == ours.ranges[0].result.figures


def test_periods_add_up_and_are_of_one_definition() -> None:
    files = [published(FAMILY["theme"], period) for period in (0, 2)]
    together = estimate_counters(join_open_counters(files))
    summed = join_open_counters([files[0], published(FAMILY["theme"], 1, by_segment=False)])

    assert together.ranges[0].result.n == sum(file.reports for file in files)
    assert together.ranges[0].time_range.last == date(2027, 2, 28)
    assert not summed.by_segment, "one of the periods is not"
    with pytest.raises(CountsError, match="give files of one definition"):
        join_open_counters([files[0], published(FAMILY["plain"])])
    with pytest.raises(CountsError, match="give each period once"):
        join_open_counters([files[0], files[0]])


CHANGED: Mapping[str, tuple[Any, str]] = {
    "open_counters": (2, "this release reads format 1"),
    "collection": ("other", "the file was changed"),
    "fingerprint": ("0" * 64, "the file was changed"),
    "period": (99, "its definition has 12 periods"),
    "from": ("2026-12-02", "the file was changed"),
    "to": ("2026-12-30", "the file was changed"),
    "P": ("1/1", "the file was changed"),
    "Q": ("0/1", "the file was changed"),
    "reports": (1, "the file was changed"),
    "by_segment": (False, "give 1 lists"),
    "counters": ([[1, 2]], "give 4 lists"),
    "definitions": ([], "the file was changed"),
    "signature": (1, "give a file of open counters"),
    "more": (1, "no such field"),
}


@pytest.mark.parametrize("name", CHANGED)
def test_whatever_is_changed_in_a_file_is_refused(name: str) -> None:
    value, sentence = CHANGED[name]
    document = json.loads(published(FAMILY["theme"]).encode()) | {name: value}

    with pytest.raises(CountsError, match=sentence) as refused:
        read_open_counters(json.dumps(document).encode())

    assert refused.value.field == ("counters" if name == "by_segment" else name)


@pytest.mark.parametrize("wrong", [-1, 1.5, True, "1", 1 << 53, None])
def test_a_counter_is_a_whole_number(wrong: Any) -> None:
    document = json.loads(published(FAMILY["plain"]).encode())
    document["counters"][0][1] = wrong

    with pytest.raises(CountsError, match="each is a whole number, 0 or more"):
        read_open_counters(json.dumps(document).encode())


@pytest.mark.parametrize("content", [b"", b"\xff", b"[]", b"{}", b"[" * 100_000])
def test_what_is_no_file_of_counters_is_refused(content: bytes) -> None:
    with pytest.raises(CountsError, match="give a file of open counters"):
        read_open_counters(content)


def test_counters_that_were_changed_are_not_of_their_signer() -> None:
    """Changed counters are refused where a key is given; planted: without one they pass."""
    key, other = Ed25519PrivateKey.generate(), Ed25519PrivateKey.generate()
    file = signed(published(FAMILY["plain"]), key)
    document = json.loads(file.encode())
    first, *rest = document["counters"][0]
    document["counters"][0] = [first + 1, *rest]
    document["reports"] += 1
    changed = json.dumps(document).encode()

    assert read_open_counters(file.encode(), public(key)).reports == file.reports
    assert read_open_counters(changed).reports == file.reports + 1
    for content, by in ((changed, key), (file.encode(), other)):
        with pytest.raises(CountsError, match="its signature is not of this key"):
            read_open_counters(content, public(by))
    with pytest.raises(CountsError, match="give the public key of `veilcount publish-key`"):
        read_open_counters(file.encode(), "a key")
