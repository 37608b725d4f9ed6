"""Headers of every response, unless it has its own: nothing is cached, framed or guessed."""

from __future__ import annotations

IMMUTABLE = "public, max-age=31536000, immutable"  # of what never changes under its path
HEADERS = {
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
}
