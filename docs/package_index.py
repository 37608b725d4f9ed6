"""The description on a package index: README.md, with links that work outside of the repository.

A package index resolves no relative link. Where pyproject.toml states `urls.Source`, links and the
image point there; without it, links become plain text and the image is left out.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

_COMMENT = re.compile(r"<!--.*?-->\n?", re.DOTALL)
_IMAGE = re.compile(r"!\[([^\]]*)\]\((?!https?:)([^)]+)\)")
_LINK = re.compile(r"(?<!!)\[([^\]]*)\]\((?!https?:)([^)]+)\)")


class DescriptionHook(MetadataHookInterface):
    """Sets the package's readme when it is built."""

    PLUGIN_NAME = "custom"

    def update(self, metadata: dict[str, Any]) -> None:
        """Add the description to the metadata of the project."""
        readme = Path(self.root, "README.md").read_text(encoding="utf-8")
        text = describe(readme, metadata.get("urls", {}).get("Source"))
        metadata["readme"] = {"content-type": "text/markdown", "text": text}


def describe(readme: str, source: str | None) -> str:
    """Return the readme with absolute links, or with none if the source has no public address."""
    text = _COMMENT.sub("", readme)
    if source is None:
        return _LINK.sub(r"\1", _IMAGE.sub("", text))
    text = _IMAGE.sub(rf"![\1]({source}/raw/HEAD/\2)", text)
    return _LINK.sub(lambda link: f"[{link[1]}]({_address(source, link[2])})", text)


def _address(source: str, target: str) -> str:
    return f"{source}{target}" if target.startswith("#") else f"{source}/blob/HEAD/{target}"
