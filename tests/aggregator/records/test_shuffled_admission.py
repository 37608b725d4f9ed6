"""A definition with too few covers is loaded nowhere, and says how many it needs."""

from __future__ import annotations

from pathlib import Path

import pytest

from veilcount_aggregator.operate.cli.main import run
from veilcount_shared.errors import DefinitionError

from ..intake.shuffled_batches.batch_fixtures import FILE
from ..web.api.deployment_fixtures import deployment

FEW = FILE.replace("covers = 142", "covers = 141")


def test_one_cover_too_few_is_refused_with_the_number_that_is_needed(tmp_path: Path) -> None:
    with deployment(tmp_path) as deployed:
        with pytest.raises(DefinitionError, match="give 142 or more"):
            deployed.push(FEW)
        assert deployed.aggregator.known().catalog.series == {}
        deployed.push(FILE)


def test_check_refuses_it_as_push_does(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "collections.toml"
    file.write_text(FEW)

    assert run(["check", str(file)]) == 2
    assert "[theme]: batch.covers = 141: give 142 or more" in capsys.readouterr().err
