"""What a browser would make of a page: its elements, its fields, where its links and forms lead."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from urllib.parse import parse_qsl, urlsplit

Attributes = list[tuple[str, str | None]]

PLAIN = ("http:", "https:")
LEADING = ("href", "src", "action", "formaction", "data", "poster")
_TYPED = ("input", "select", "textarea")


@dataclass
class Form:
    """A form: where it goes, how, and what it sends as it stands."""

    action: str
    posts: bool
    fields: dict[str, str] = field(default_factory=dict)


class ParsedPage(HTMLParser):
    """A page, read as a browser reads it: what stands in a script is text until the script ends."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.forms: list[Form] = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: Attributes) -> None:
        attributes = {name: value or "" for name, value in attrs}
        self.elements.append((tag, attributes))
        if tag == "form":
            posts = attributes.get("method", "").lower() == "post"
            self.forms.append(Form(attributes.get("action", ""), posts))
        elif tag in _TYPED and self.forms and attributes.get("name"):
            self.forms[-1].fields[attributes["name"]] = attributes.get("value", "")

    def links(self) -> Iterator[str]:
        """Yield every address that the page leads to or loads."""
        for _, attributes in self.elements:
            yield from (attributes[name] for name in LEADING if name in attributes)

    def query_names(self) -> set[str]:
        """Return the names of all that a page of this kind takes in its address."""
        linked = (
            name for link in self.links() for name, _ in parse_qsl(urlsplit(link).query, True)
        )
        return {*linked, *(name for form in self.forms if not form.posts for name in form.fields)}

    def foreign(self, mark: str) -> list[str]:
        """Return what is not of ours: marked elements and attributes, handlers, other schemes."""
        found = []
        for tag, attributes in self.elements:
            if mark in tag or any(mark in name or name.startswith("on") for name in attributes):
                found.append(f"<{tag} {attributes}>")
            if tag == "script" and not attributes.get("src"):
                found.append("a script in the page")
        return found + [link for link in self.links() if _leads_out(link)]


def _leads_out(link: str) -> bool:
    there = urlsplit(link)
    return bool(there.scheme or there.netloc) or link.startswith(("//", "/\\"))
