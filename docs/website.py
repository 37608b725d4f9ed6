"""The documentation as a site: `./dev docs` builds it, by mkdocs, with these hooks.

Pages stay where they are in the checkout, so that a link works in both. The references are written
when the site is built, from what the code declares. A link to a file that readers use is a file of
the site; one to source code leads to the project's address if it states one, else it is its label.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path, PurePosixPath

from docs.reference import references
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[1]
#: whose files readers copy and run; what is linked elsewhere is source code
USED = {"docs", "examples", "deploy"}
ASSETS = ["aggregator/veilcount_aggregator/web/dashboard/static/mark.svg", "docs/website.css"]
_COMMENT = re.compile(r"^ *<!--.*?-->\n", re.MULTILINE | re.DOTALL)
_FENCED_OR_LINK = re.compile(
    r"^ *```.*?^ *```$|\[(?P<label>[^\]]*)\]\((?P<path>[^)\s#:]+)(?:#[^)\s]*)?\)",
    re.MULTILINE | re.DOTALL,
)


def pages() -> list[str]:
    """List the pages for people, by their paths in the checkout."""
    paths = [*ROOT.glob("*.md"), *ROOT.glob("[!.]*/*.md")]
    return sorted(str(path.relative_to(ROOT)) for path in paths)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Take the pages from the checkout, with the files that they link, and add the references."""
    themes = [file for file in files if file.src_dir != config.docs_dir]
    paths = [*pages(), *ASSETS, *sorted(set(_linked_files()))]
    written = [File.generated(config, path, content=text) for path, text in references().items()]
    return Files([*themes, *(_file(path, config) for path in paths), *written])


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Leave out what readers do not see, and links that lead nowhere in the site."""
    here = PurePosixPath(page.file.src_uri).parent

    def replace(match: re.Match[str]) -> str:
        path = match["path"]
        if path is None or files.get_file_from_path(target := _target(here, path)):
            return match[0]
        return f"[{match['label']}]({source}/blob/HEAD/{target})" if source else match["label"]

    source = _source()
    return _FENCED_OR_LINK.sub(replace, _COMMENT.sub("", markdown))


def _file(path: str, config: MkDocsConfig) -> File:
    return File(path, str(ROOT), config.site_dir, config.use_directory_urls)


def _linked_files() -> Iterator[str]:
    for page in pages():
        here = PurePosixPath(page).parent
        for match in _FENCED_OR_LINK.finditer((ROOT / page).read_text(encoding="utf-8")):
            target = _target(here, match["path"] or page)
            first, *below = PurePosixPath(target).parts
            if (first in USED or not below) and target not in pages() and (ROOT / target).is_file():
                yield target


def _target(here: PurePosixPath, path: str) -> str:
    return os.path.normpath(here / path)


@cache
def _source() -> str | None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    source: str | None = project.get("urls", {}).get("Source")
    return source
