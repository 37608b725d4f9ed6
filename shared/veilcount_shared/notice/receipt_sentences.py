"""The sentences of a receipt in plain text, in English; words in braces are filled in."""

from __future__ import annotations

from collections.abc import Mapping

RECEIPT: Mapping[str, str] = {
    "spent": "spent {spent} of {life}; {answers} answers given",
    "spent_by_forms": "spent {spent} of {life}; with earlier forms",
    "closed": "closed: no more reports are accepted",
    "report": "{status}: {when}, {description}",
    "total": "{model}, {adjacency}: epsilon {epsilon}",
    "limit": "limit on this device: {charged} of at most {ceiling}, the plain sum of the stated"
    " epsilons (a safety limit, no privacy figure)",
    "losses": "Not recorded, {reason}: {count}",
}
