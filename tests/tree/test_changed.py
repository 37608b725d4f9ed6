"""`./dev quick` runs the unit tests of what changed, the nearest first."""

from __future__ import annotations

import pytest

from .changed import module_name, unit_tests


@pytest.mark.parametrize(
    ("file", "name"),
    [
        ("client/veilcount_client/client.py", "veilcount_client.client"),
        ("aggregator/analysis/veilcount_analysis/__init__.py", "veilcount_analysis"),
        ("aggregator/veilcount_issuer/keys.py", "veilcount_issuer.keys"),
        ("tests/tree/test_changed.py", "tests.tree.test_changed"),
        ("docs/operating.md", ""),
    ],
)
def test_a_file_is_named_as_it_is_imported(file: str, name: str) -> None:
    assert module_name(file) == name


def test_a_changed_test_comes_before_those_that_import_a_changed_module() -> None:
    changed = ["shared/veilcount_shared/schedule.py", "tests/tree/test_changed.py"]
    paths = list(unit_tests(changed))

    assert paths[:2] == ["tests/tree/test_changed.py", "tests/properties/test_schedule.py"]
    assert "tests/client/recording/test_recorder.py" in paths


def test_what_a_package_re_exports_is_tested_by_what_imports_the_package() -> None:
    paths = list(unit_tests(["client/veilcount_client/client.py"]))

    assert "tests/client/test_facade.py" in paths


def test_what_a_package_imports_unnamed_is_tested_by_what_imports_the_package() -> None:
    analysis = "aggregator/analysis/veilcount_analysis"
    handler = f"{analysis}/mechanisms/trend.py"
    query = f"{analysis}/releases/query_types/number_queries.py"

    assert "tests/analysis/series/test_messages.py" in unit_tests([handler])
    assert "tests/aggregator/releases/test_queries.py" in unit_tests([query])


def test_what_no_test_imports_is_tested_by_the_folder_that_mirrors_it() -> None:
    paths = list(unit_tests(["aggregator/veilcount_aggregator/web/dashboard/definitions.py"]))

    assert paths[0] == "tests/aggregator/web/dashboard/test_definitions_page.py"


def test_tests_of_the_whole_system_and_documents_are_left_out() -> None:
    assert list(unit_tests(["docs/operating.md", "tests/system/test_serving.py", "gone.py"])) == []
