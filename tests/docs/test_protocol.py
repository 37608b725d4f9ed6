"""The specification: its pseudocode computes what the vectors say, and it names what there is."""

from __future__ import annotations

import doctest
import json
import re
from datetime import datetime, timedelta
from fractions import Fraction
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from veilcount_aggregator.web.api.problems import PROBLEM_KINDS
from veilcount_client.testing import SeededRandomSource
from veilcount_issuer.problems import ISSUER_PROBLEMS
from veilcount_shared import parse_collections, select_mechanism
from veilcount_shared.collection import Linkage
from veilcount_shared.collection.toml import _KEYS
from veilcount_shared.epsilon import exp_lower
from veilcount_shared.mechanisms import MeanMechanism, ProjectiveGeometry, SubsetSelection
from veilcount_shared.mechanisms.finite_field import POLYNOMIALS
from veilcount_shared.oblivious_http.hpke import encapsulate
from veilcount_shared.schedule import derive_token_pseudonym, derive_token_salt
from veilcount_shared.shuffling.times import batch_rules
from veilcount_shared.tokens.slot_token import signed_message

from ..properties.definition_harness import no_values_file
from ..vectors.wrong_clients import mistakes
from ..vectors.wrong_states import WRONG_CLIENTS
from .page_parser import ROOT

PAGE = (ROOT / "docs" / "protocol.md").read_text(encoding="utf-8")
VECTORS = ROOT / "tests" / "vectors"


def pseudocode() -> dict[str, Any]:
    """Return the functions of the page."""
    names: dict[str, Any] = {}
    for example in doctest.DocTestParser().get_examples(PAGE):
        exec(example.source, names)  # noqa: S102 - the page's own text
    return names


SPEC = pseudocode()


def load(name: str) -> Any:
    return json.loads((VECTORS / name).read_text(encoding="utf-8"))


# -- pseudocode ------------------------------------------------------------------------------------


def test_a_fingerprint_is_the_hash_of_a_canonical_form() -> None:
    listed = [vector for vector in load("definitions.json")["vectors"] if "values" not in vector]

    assert len(listed) > 20
    for vector in listed:
        assert SPEC["fingerprint"](vector["canonical"]) == vector["fingerprint"]


def test_the_draws_of_a_secret_are_those_of_the_vectors() -> None:
    schedule = load("schedule.json")
    for vector in schedule["words"]:
        words = SPEC["words"](bytes.fromhex(vector["secret"]), *vector["purpose"])
        assert [f"{next(words):016x}" for _ in vector["words"]] == vector["words"]
    for vector in schedule["below"]:
        words = SPEC["words"](bytes.fromhex(vector["secret"]), *vector["purpose"])
        for n, drawn, _ in vector["draws"]:
            assert SPEC["below"](int(n), words.__next__) == int(drawn)


def test_periods_slots_and_pseudonyms_are_those_of_the_vectors() -> None:
    schedule = load("schedule.json")
    collections = parse_collections("\n".join(schedule["toml"]), no_values_file)
    for person in schedule["persons"]:
        secret, name = bytes.fromhex(person["secret"]), person["fingerprint"]
        root = bytes.fromhex(person.get("root", person["secret"]))
        collection = collections[person["collection"]]
        words = SPEC["words"](root, "answers", name).__next__
        drawn = SPEC["draw_periods"](collection.periods, collection.answering, words)

        assert sorted(drawn) == person["answering periods"]
        for answer in person["answers"]:
            words = SPEC["words"](secret, "slots", name, answer["period"]).__next__
            order = SPEC["draw_order"](collection.per_day, words)
            epoch = 0 if collection.linkage is Linkage.COLLECTION else answer["period"]
            assert answer["slot"] % len(order) == order[answer["answer"]]
            if answer["pseudonym"] is not None:
                assert SPEC["pseudonym"](secret, name, epoch).hex() == answer["pseudonym"]


PLANES = [(40, 2, 6), (40, 3, 5), (70, 4, 4), (70, 8, 3), (180, 13, 3), (250, 16, 3)]
PLANES += [(k, q, 3) for k, q in ((900, 32), (900, 64), (900, 128), (900, 256))]


@pytest.mark.parametrize(("k", "q", "t"), PLANES)
def test_a_hyperplane_holds_the_points_that_the_mechanism_says(k: int, q: int, t: int) -> None:
    plane = ProjectiveGeometry.for_epsilon(Fraction(1), k, q, t)
    chance = SeededRandomSource(1)
    for message, x in ((chance.below(plane.messages), chance.below(k)) for _ in range(2_000)):
        held = SPEC["plane_holds"](message, x, q, t, POLYNOMIALS.get(q))
        assert held is plane.supports(message, x)


@pytest.mark.parametrize(("k", "w"), [(6, 1), (6, 2), (9, 3), (300, 3)])
def test_a_subset_is_written_as_the_page_says(k: int, w: int) -> None:
    subset = SubsetSelection.for_epsilon(Fraction(1), k, w)
    tables, chance = subset.tables(), SeededRandomSource(2)
    for x in range(0, k, 5):
        message = subset.randomize(x, chance)
        members = SPEC["subset_members"](message, k, w, tables["encoding"], tables["label_bits"])
        assert tuple(members) == subset.members(message)


@pytest.mark.parametrize("epsilon", ["0.1", "1", "1.75", "3.5", "4.5", "7"])
def test_a_number_is_rounded_as_the_page_says(epsilon: str) -> None:
    mean = MeanMechanism.for_epsilon(Fraction(epsilon))
    starts = [int(start) for start in mean.tables()["starts"]]
    for grid in (0, 1, 2**31, 2**32 - 1, 2**32, 123_456_789):
        ours, theirs = SeededRandomSource(grid), SeededRandomSource(grid)
        assert mean.start(grid, ours) == SPEC["round_to_start"](grid, starts, theirs.word)


def test_a_threshold_is_private_and_the_next_is_not() -> None:
    for k, epsilon in ((2, "1"), (3, "0.5"), (1000, "2"), (20_000, "4")):
        mechanism = select_mechanism(k, epsilon).mechanism
        e = int(exp_lower(Fraction(epsilon)) * 2**96)
        r, m = _set_sizes(mechanism, k)
        assert SPEC["is_private"](mechanism.a, r, m, e)
        assert not SPEC["is_private"](mechanism.a + 1, r, m, e)


def _set_sizes(mechanism: SubsetSelection | ProjectiveGeometry, k: int) -> tuple[int, int]:
    if isinstance(mechanism, ProjectiveGeometry):
        return mechanism.support_size, mechanism.messages
    return mechanism.w, k


def test_the_body_of_one_report_is_that_of_the_vector() -> None:
    vector = load("wire/one_report.json")
    [report] = vector["batch"]["reports"]
    body = bytes.fromhex(vector["body"])
    encoded = SPEC["encode_one"](
        report["fingerprint"],
        bytes.fromhex(report["pseudonym"]),
        *(report[key] for key in ("period", "slot", "segment")),
        bytes.fromhex(report["message"]),
        len(body),
    )
    assert encoded == body


def test_what_a_token_signs_is_derived_as_the_page_says() -> None:
    secret, name = bytes(range(32)), "ab" * 32
    pseudonym = SPEC["token_pseudonym"](secret, name, 3, 1)

    assert pseudonym == derive_token_pseudonym(secret, name, 3, 1)
    assert SPEC["token_salt"](secret, name, 3, 1) == derive_token_salt(secret, name, 3, 1)
    assert SPEC["token_message"](name, 3, pseudonym) == signed_message(name, 3, pseudonym)


def test_what_a_device_gives_a_shuffler_is_that_of_the_vectors() -> None:
    document = load("shuffled.json")
    for row in document["crowds"]:
        config = bytes.fromhex(document["keys"][row["key"]][1])
        named = row["fingerprint"], row["period"], config, first_aead(config), row["size"]
        assert SPEC["crowd_id"](*named).hex() == row["crowd"]
    fingerprints = {row["collection"]: row["fingerprint"] for row in document["crowds"]}
    for row in (row for row in document["reports"] if not int(row["mark"], 16)):
        fields = (bytes.fromhex(row[key]) for key in ("message", "pseudonym", "token"))
        plain, config = SPEC["plain_report"](*fields), bytes.fromhex(row["config"])
        aead, size = first_aead(config), len(plain) + 55
        name = fingerprints[row["collection"]]
        label = SPEC["crowd_id"](name, row["period"], config, aead, size)
        header = SPEC["sealed_header"](config, aead)
        info = SPEC["sealed_info"](header, label, row["period"])
        ephemeral = X25519PrivateKey.from_private_bytes(bytes.fromhex(row["ephemeral"]))
        enc, context = encapsulate(config[3:35], aead, info, ephemeral)
        sealed = header + enc + context.seal(plain)
        assert plain.hex() == row["plain"]
        assert SPEC["envelope"](label, row["period"], sealed).hex() == row["envelope"]
        assert len(sealed) == size


def test_a_report_leaves_at_the_instant_that_the_page_says() -> None:
    document = load("shuffled.json")
    collections = parse_collections("\n".join(document["toml"]), no_values_file)
    for name, root, period, at, ends, _ in document["sending"]:
        grace = batch_rules(collections[name]).grace
        fingerprint = collections[name].fingerprint
        seconds = SPEC["sending_second"](bytes.fromhex(root), fingerprint, period, grace)
        end = datetime.fromisoformat(ends) - timedelta(days=grace)
        assert (end + timedelta(seconds=seconds)).isoformat() == at


def first_aead(config: bytes) -> int:
    return int.from_bytes(config[39:41], "big")


def test_a_name_of_the_keys_id_alone_is_detected(monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: two keys under one id would divide what is mixed, unseen."""
    right = SPEC["crowd_id"]
    monkeypatch.setitem(
        SPEC, "crowd_id", lambda name, period, config, *rest: right(name, period, config[:1], *rest)
    )

    with pytest.raises(AssertionError):
        test_what_a_device_gives_a_shuffler_is_that_of_the_vectors()


def test_a_wrong_line_of_the_pseudocode_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: low bits instead of high ones."""

    def below(n: int, word: Any) -> int:
        while (drawn := word() & (1 << (n - 1).bit_length()) - 1) >= n:
            pass
        return int(drawn)

    monkeypatch.setitem(SPEC, "below", below)
    with pytest.raises(AssertionError):
        test_the_draws_of_a_secret_are_those_of_the_vectors()


# -- what the page names ---------------------------------------------------------------------------


def test_it_names_every_vector_file_and_every_problem_type() -> None:
    files = {path.name for path in VECTORS.glob("*.json")}
    problems = {kind.name for kind in (*PROBLEM_KINDS.values(), *ISSUER_PROBLEMS.values())}

    assert {name for name in files if f"`{name}`" not in PAGE} == set()
    assert {name for name in problems if f"`{name}`" not in PAGE} == set()


def test_it_says_how_many_wrong_clients_the_vectors_reject() -> None:
    counts = f"Each of {len(mistakes())} wrong clients and of {len(WRONG_CLIENTS)} wrong lives"

    assert counts in PAGE


def test_it_names_nothing_of_the_implementation() -> None:
    assert not re.findall(r"veilcount_\w+|\w+\.py\b|\bimport veilcount", PAGE)


def test_the_table_of_keys_has_every_key_of_a_definition() -> None:
    text = (ROOT / "docs" / "concepts.md").read_text(encoding="utf-8")
    section = text.partition("## The keys of a definition")[2].partition("\n## ")[0]
    cells = re.findall(r"^\| ((?:`\w+`(?:, )?)+) \|", section, re.MULTILINE)

    assert sorted(key for cell in cells for key in re.findall(r"\w+", cell)) == sorted(_KEYS)
