"""Tokens of reports: which ones the key of their slot's period has signed.

Verification is public, some 30 us each, and the dearest check of all, so it comes last: only of
reports that would be counted, after the limit of their body. Whoever sends one that fails gets the
verdict of any other report that no honest device sends.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.padding import MGF1, PSS
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey, RSAPublicNumbers
from cryptography.hazmat.primitives.hashes import SHA384

from veilcount_analysis.series.series import Series
from veilcount_shared.tokens import PublicKey, signed_message
from veilcount_shared.tokens.blind_rsa import SALT_BYTES
from veilcount_shared.verdict import Verdict

from ..store import CODES, COUNTED, Codes
from .decode import SeriesColumns

_PADDING = PSS(MGF1(SHA384()), SALT_BYTES)


def reject_invalid_tokens(
    series: Series, columns: SeriesColumns, codes: Codes, periods: range
) -> None:
    """Change the code of each sound report of these periods whose token is not valid."""
    open_ = (columns.periods >= periods.start) & (columns.periods < periods.stop)
    for place in np.flatnonzero((codes == COUNTED) & open_).tolist():
        period, pseudonym = int(columns.periods[place]), columns.pseudonyms[place].tobytes()
        if not is_valid_token(series, period, pseudonym, columns.tokens[place].tobytes()):
            codes[place] = CODES[Verdict.MALFORMED]


def is_valid_token(series: Series, period: int, pseudonym: bytes, token: bytes) -> bool:
    """Whether the key of a period has signed a pseudonym."""
    message = signed_message(series.fingerprint, period, pseudonym)
    key = _public_key(series.token_keys[period])
    try:
        key.verify(token, message, _PADDING, SHA384())
    except InvalidSignature:
        return False
    return True


@lru_cache(maxsize=4096)
def _public_key(key: PublicKey) -> RSAPublicKey:
    return RSAPublicNumbers(key.e, key.n).public_key()
