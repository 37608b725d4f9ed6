"""The tree stays as small as it is, and its picture shows the imports of today."""

from __future__ import annotations

from graphlib import CycleError

import pytest

from .import_graph import ImportGraph, contract, node, read
from .picture import PICTURE, svg
from .sizes import Size, sizes


def test_each_size_is_within_its_limit() -> None:
    assert [size for size in sizes() if size.is_exceeded] == []


def test_a_size_over_its_limit_is_marked() -> None:
    assert str(Size("tests", 12_000, 11_999, 7_000)).endswith(
        "12,000  11,999   7,000  over the limit"
    )
    assert not Size("tests", 12_000, 12_000, 7_000).is_exceeded


def test_the_picture_shows_the_imports_of_today() -> None:
    """`./dev sizes --draw` draws it again."""
    assert PICTURE.read_text(encoding="utf-8") == svg(read())


def test_a_folder_is_above_all_that_it_imports() -> None:
    graph = ImportGraph({"a": {"b", "d"}, "b": {"c"}, "c": {"d"}, "d": set()})

    assert graph.levels == {"d": 1, "c": 2, "b": 3, "a": 4}
    assert graph.reduced == {"a": {"b"}, "b": {"c"}, "c": {"d"}, "d": set()}


def test_folders_that_import_each_other_have_no_level() -> None:
    with pytest.raises(CycleError):
        _ = ImportGraph({"a": {"b"}, "b": {"a"}}).levels


def test_a_module_of_no_folder_passes_its_imports_on() -> None:
    top, store = "veilcount_aggregator.server", "veilcount_aggregator.store"
    service, errors = "veilcount_aggregator.service", "veilcount_aggregator.errors"
    graph = contract({top: {service}, service: {store, errors}, errors: set(), store: set()})

    assert graph.imports == {top: {store}, store: set()}


def test_a_package_is_one_folder_and_the_aggregator_several() -> None:
    assert node("veilcount_client.delivery.worker") == "veilcount_client"
    assert node("veilcount_aggregator.web.api.problems") == "veilcount_aggregator.web"
