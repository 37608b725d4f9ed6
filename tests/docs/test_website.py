"""The site of the documentation: built strictly, whole, and with nothing from elsewhere."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from html import unescape
from pathlib import Path

import pytest
from docs.reference import LIBRARIES, helps, http, public_names
from docs.website import pages

from veilcount_aggregator.operate.cli.main import COMMANDS
from veilcount_aggregator.web.api.routes import ENDPOINTS
from veilcount_client.__main__ import COMMANDS as CLIENT_COMMANDS
from veilcount_client.__main__ import PROGRAM

from .page_parser import ROOT

#: what a browser loads by itself
LOADED = re.compile(r'<(?:script|img|link(?! rel="(?:next|prev)"))\b[^>]*?(?:src|href)="([^"]+)"')


def build(folder: Path, config: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "mkdocs", "build", "--strict"]
    files = ["--config-file", str(config), "--site-dir", str(folder)]
    own = {"NO_MKDOCS_2_WARNING": "1", "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])}
    return subprocess.run(
        command + files, check=False, env=os.environ | own, capture_output=True, text=True
    )


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    done = build(folder, ROOT / ".mkdocs.yml")

    assert done.returncode == 0, done.stderr
    return folder


def test_every_page_is_in_the_site_and_in_its_menu(site: Path) -> None:
    menu = (site / "index.html").read_text(encoding="utf-8")
    for page in pages():
        path = re.sub(r"README\.md$", "index.md", page).removesuffix(".md") + ".html"

        assert (site / path).exists(), page
        assert f'href="{path}"' in menu or page == "README.md", page


def test_the_site_loads_nothing_from_elsewhere(site: Path) -> None:
    loaded = [
        address
        for path in site.rglob("*.html")
        for address in LOADED.findall(path.read_text(encoding="utf-8"))
    ]

    assert len(loaded) > len(pages())
    assert [address for address in loaded if "//" in address] == []
    assert LOADED.findall('<link rel="stylesheet" href="https://fonts.example.org/a.css">')


def test_readers_see_no_directive_of_a_test(site: Path) -> None:
    assert "population: theme" in (ROOT / "README.md").read_text(encoding="utf-8")
    assert "population: theme" not in (site / "index.html").read_text(encoding="utf-8")


def test_every_command_and_option_is_in_the_reference(site: Path) -> None:
    page = (site / "reference" / "commands.html").read_text(encoding="utf-8")
    shown = unescape(re.sub(r"<[^>]+>", "", page))
    texts = dict(helps())

    assert {f"veilcount {name}" for name in COMMANDS} <= texts.keys()
    assert {f"{PROGRAM} {name}" for name in CLIENT_COMMANDS} <= texts.keys()
    for path, text in texts.items():
        assert re.search(rf"<h2[^>]*><code>{re.escape(path)}</code>", page), path
        assert text in shown, path


def test_every_endpoint_is_in_the_reference() -> None:
    page = http()

    assert all(f"### `{endpoint.method} {endpoint.path}`\n" in page for endpoint in ENDPOINTS)


@pytest.mark.parametrize("package", LIBRARIES)
def test_every_public_name_is_documented(site: Path, package: str) -> None:
    page = (site / "reference" / f"{package}.html").read_text(encoding="utf-8")
    for place in public_names(package).values():
        heading = page.partition(f'id="{place}"')[2]
        before_the_next, _, _ = heading.partition("<h2")

        assert "<p>" in before_the_next, place


def test_a_broken_link_fails_the_build(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "index.md").write_text("[gone](gone.md)\n", encoding="utf-8")
    settings = (ROOT / ".mkdocs.yml").read_text(encoding="utf-8")
    validation = settings[settings.index("validation:") : settings.index("\nnav:")]
    (tmp_path / "mkdocs.yml").write_text(f"site_name: test\n{validation}\n", encoding="utf-8")
    done = build(tmp_path / "site", tmp_path / "mkdocs.yml")

    assert done.returncode != 0
    assert "gone.md" in done.stderr
