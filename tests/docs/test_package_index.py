"""What a package index shows: the readme, without a link that leads nowhere there."""

from __future__ import annotations

import re

from docs.package_index import describe

from .page_parser import ROOT

RELATIVE = re.compile(r"\]\((?!https://)")
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_description_has_no_relative_link() -> None:
    assert RELATIVE.search(README)
    assert not RELATIVE.search(describe(README, None))
    assert not RELATIVE.search(describe(README, "https://example.org/veilcount"))


def test_links_and_the_image_lead_to_the_source_if_it_has_an_address() -> None:
    page = "![A page](docs/page.png) [guide](docs/guide.md#start), [below](#end)<!-- hidden -->"

    assert describe(page, "https://example.org/it") == (
        "![A page](https://example.org/it/raw/HEAD/docs/page.png)"
        " [guide](https://example.org/it/blob/HEAD/docs/guide.md#start),"
        " [below](https://example.org/it#end)"
    )
    assert describe(page, None) == " guide, below"
