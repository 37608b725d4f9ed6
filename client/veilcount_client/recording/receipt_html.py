"""The receipt as one HTML page: no script, nothing to load, readable without colours or styles.

The pictures are inline SVG next to their figures; light and dark follow the system.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction
from html import escape

from veilcount_shared.guessing import times_in_twenty
from veilcount_shared.notice import Notice

from .receipt_contents import EarlierEntry, ReceiptContents, ReceiptEntry
from .receipt_messages import HtmlTexts

STYLE = """
:root { color-scheme: light dark; --text: #1c1c1e; --page: #fff; --quiet: #55555c; --line: #8a8a92;
  --bar: #1d5fa8 }
@media (prefers-color-scheme: dark) { :root { --text: #ececf0; --page: #17171a; --quiet: #b4b4bd;
  --line: #7d7d87; --bar: #7db5f0 } }
body { margin: 0; background: var(--page); color: var(--text);
  font: 1rem/1.5 system-ui, sans-serif }
main { max-width: 42rem; margin: 0 auto; padding: 1.5rem 1rem }
h1 { font-size: 1.6rem } h2 { font-size: 1.2rem; margin-top: 2rem } h3 { font-size: 1rem }
.bars { list-style: none; padding: 0 } .bars li { display: flow-root; margin-bottom: .5rem }
.bars b { float: inline-end } svg { display: block; clear: both; width: 100% }
.track { fill: none; stroke: var(--line) } .bar { fill: var(--bar) } .quiet { color: var(--quiet) }
table { border-collapse: collapse; width: 100% } caption { text-align: start; font-weight: 600 }
th, td { text-align: start; vertical-align: top; padding: .25rem .75rem .25rem 0;
  border-bottom: 1px solid var(--line); overflow-wrap: anywhere }
td:nth-child(2):nth-last-child(2) { overflow-wrap: normal }
pre { white-space: pre-wrap; overflow-wrap: anywhere }
a { color: inherit } button { font: inherit; color: inherit; background: none; cursor: pointer;
  padding: .5rem 1.25rem; margin: .5rem .75rem .5rem 0; border: 2px solid var(--bar);
  border-radius: .375rem }
:focus-visible { outline: 3px solid var(--bar); outline-offset: 2px }
"""
HALF = Fraction(1, 2)
WIDTH, BAR = 600, 16  # of a bar, in its own units


def document(title: str, language: str, body: Iterable[str]) -> str:
    """Return a page in the style of all of them; the title is text that is escaped already."""
    return "\n".join(
        (
            "<!DOCTYPE html>",
            f'<html lang="{escape(language)}">',
            '<head><meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{title}</title><style>{STYLE}</style></head>",
            f"<body><main><h1>{title}</h1>",
            *body,
            "</main></body></html>",
        )
    )


def page(
    receipt: ReceiptContents,
    messages: Mapping[str, object] | None = None,
    language: str = "en",
    links: Iterable[str] = (),
) -> str:
    """Return the page of a receipt, with links of an app's at its end."""
    texts = HtmlTexts(messages)
    return document(texts("receipt_title"), language, (*_body(receipt, texts), *links))


def _body(receipt: ReceiptContents, texts: HtmlTexts) -> Iterator[str]:
    if receipt.problem:
        yield _paragraph(texts("receipt_problem"))
        return
    yield _paragraph(texts("receipt_intro"))
    if not (receipt.charged or any(entry.sent for entry in receipt.entries)):
        yield _paragraph(texts("receipt_nothing"))
    yield from _spent(receipt.entries, texts)
    for entry in receipt.entries:
        yield from _question(entry, texts)
    if receipt.earlier:
        yield _heading(texts("earlier_title"))
        for earlier in receipt.earlier:
            yield from _earlier(earlier, texts)
    yield from _losses(receipt.losses, texts)


def _spent(entries: Iterable[ReceiptEntry], texts: HtmlTexts) -> Iterator[str]:
    most = max((float(Fraction(entry.life)) for entry in entries), default=0.0)
    if not most:
        return
    yield _heading(texts("spent_title"))
    yield _paragraph(texts("spent_text"))
    yield _picture(
        (
            escape(entry.name),
            texts("spent_figure", spent=f"{entry.spent:g}", life=entry.life),
            entry.spent / most,
            float(Fraction(entry.life)) / most,
        )
        for entry in entries
    )


def _question(entry: ReceiptEntry, texts: HtmlTexts) -> Iterator[str]:
    yield _heading(_named(escape(entry.question), entry.name))
    facts = []
    if entry.answers is not None:
        facts.append(texts("question_answers", answers=entry.answers))
    if entry.closed:
        facts.append(texts("question_closed"))
    yield _paragraph(" ".join(facts))
    if entry.kept_values:
        yield _list(
            texts(value.message_key, when=value.when, until=value.until)
            for value in entry.kept_values
        )
    yield from _guesses(entry, texts)
    yield from _reports(entry.sent, texts)
    yield f"<details><summary>{texts('question_notice')}</summary>"
    yield from notice_paragraphs(entry.notice, texts)
    yield "</details>"


def notice_paragraphs(notice: Notice, texts: HtmlTexts) -> Iterator[str]:
    """Yield the privacy notice of a question, a paragraph for each part."""
    for part in notice.texts(texts):
        yield _paragraph(f"<strong>{part.title}.</strong> {part.text}")


def _guesses(entry: ReceiptEntry, texts: HtmlTexts) -> Iterator[str]:
    """Yield the picture of how often a guess between two answers is right."""
    bounds = {"guess_one": entry.guess_one, "guess_all": entry.guess_all}
    chances = {"guess_none": HALF} | {key: p for key, p in bounds.items() if p is not None}
    if len(chances) > 1:
        yield f"<h3>{texts('guess_title')}</h3>"
        yield _picture(
            (texts(key), texts("guess_times", times=times_in_twenty(p)), float(p), 1.0)
            for key, p in chances.items()
        )


def _reports(sent: Iterable[Mapping[str, object]], texts: HtmlTexts) -> Iterator[str]:
    rows = [
        (
            str(report["when"]),
            _status(str(report["status"]), texts),
            _content(report.get("answer"), texts),
        )
        for report in sent
    ]
    if not rows:
        return
    heads = (texts("report_when"), texts("report_status"), texts("report_content"))
    yield f"<table><caption>{texts('reports_title')}</caption><thead><tr>"
    yield "".join(f'<th scope="col">{head}</th>' for head in heads)
    yield "</tr></thead><tbody>"
    for when, status, content in rows:
        cells = f"<td>{status}</td><td>{content}</td>"
        yield f'<tr><th scope="row">{escape(when)}</th>{cells}</tr>'
    yield "</tbody></table>"


def _content(answer: object, texts: HtmlTexts) -> str:
    if answer is None:  # of a definition that is no longer loaded
        return ""
    return texts("content_randomized", answer=answer) if answer else texts("content_true")


def _status(status: str, texts: HtmlTexts) -> str:
    if status in {"waiting", "delivered", "sent", "unanswered"}:
        return texts(f"status_{status}")
    return texts("status_dropped", status=status)


def _earlier(entry: EarlierEntry, texts: HtmlTexts) -> Iterator[str]:
    question = escape(entry.question) or texts("earlier_unknown")
    yield f"<h3>{_named(question, entry.name)}</h3>"
    facts = [texts("question_dates", start=entry.start, until=entry.until)] if entry.start else []
    if entry.spent:
        facts.append(texts("earlier_spent", spent=f"{entry.spent:g}"))
    yield _paragraph(" ".join(facts))
    yield from _reports(entry.sent, texts)


def _losses(losses: Mapping[str, int], texts: HtmlTexts) -> Iterator[str]:
    if losses:
        yield f"<details><summary>{texts('losses_title')}</summary>"
        yield _list(f"{escape(reason)}: {count}" for reason, count in losses.items())
        yield "</details>"


def _picture(rows: Iterable[tuple[str, str, float, float]]) -> str:
    """Return a list of bars: each with its label, its figure, and how much of which share is full.

    The words are HTML, which grows with a reader's letters; the bars repeat them in SVG.
    """
    items = (
        f'<li><span>{label}</span> <b>{figure}</b><svg viewBox="0 0 {WIDTH} {BAR}" height="{BAR}"'
        f' preserveAspectRatio="none" aria-hidden="true">{_bar("track", share)}{_bar("bar", full)}'
        "</svg></li>"
        for label, figure, full, share in rows
    )
    return f'<ul class="bars">{"".join(items)}</ul>'


def _bar(kind: str, share: float) -> str:
    width = f"{(WIDTH - 2) * min(share, 1.0):.1f}"
    paint = 'fill="none" stroke="currentColor"' if kind == "track" else 'fill="currentColor"'
    return f'<rect class="{kind}" x="1" y="1" width="{width}" height="{BAR - 2}" {paint}/>'


def _named(question: str, name: str) -> str:
    return f'{question} <span class="quiet">[{escape(name)}]</span>'


def _heading(text: str) -> str:
    return f"<h2>{text}</h2>"


def _paragraph(text: str) -> str:
    return f"<p>{text}</p>"


def _list(items: Iterable[str]) -> str:
    return f"<ul>{''.join(f'<li>{item}</li>' for item in items)}</ul>"
