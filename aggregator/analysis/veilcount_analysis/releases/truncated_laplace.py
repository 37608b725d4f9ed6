"""Truncated discrete Laplace noise: it names strings and counts them at one price [DVGM22].

Noise is drawn with P(x) proportional to e^(-|x|/scale) until |x| <= reach, and a count is released
if it is above the reach under noise: nothing of it is seen else, as of a string that nobody has.
One answer more moves each outcome's probability by e^(1/scale) at most, but the largest outcome's,
which is new: its probability is the delta. The reach is the least with that delta.

A person may give c answers. The guarantee of one is per answer (e, d); of c together it is (c e,
d (e^(c e) - 1) / (e^e - 1)) by group privacy, however they are spread. d = delta / c is not enough
where the c answers are one string: the delta of each further step is weighed by e^e once more.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction

from .opendp_noise import NoiseSource

_EXACT = Context(prec=60)
_SAFE = Decimal("1e-40")  # far above the rounding of 60 digits, and far below one step


def noise_reach(scale: float, delta: Fraction, answers: int = 1) -> int:
    """Return the least reach whose largest outcome has probability d at most.

    With e = 1 / scale and d as above, it is ln((e^e - 1 + 2 d) / ((e^e + 1) d)) / e, rounded up.
    """
    rate = _EXACT.divide(Decimal(1), Decimal(scale))
    growth = _EXACT.exp(rate)
    group = _EXACT.divide(_EXACT.exp(answers * rate) - 1, growth - 1)
    chance = _EXACT.divide(Decimal(delta.numerator), Decimal(delta.denominator) * group)
    odds = _EXACT.divide(growth - 1 + 2 * chance, (growth + 1) * chance)
    steps = _EXACT.divide(_EXACT.ln(odds), rate)
    return int((steps + _SAFE).to_integral_value(ROUND_CEILING))


def truncated(draw: NoiseSource, reach: int) -> NoiseSource:
    """Return a source that draws again what is beyond the reach: exact, as its draws are."""

    def add(true: Sequence[int], scale: float) -> list[int]:
        noise = draw([0] * len(true), scale)
        while redrawn := [place for place, drawn in enumerate(noise) if abs(drawn) > reach]:
            for place, drawn in zip(redrawn, draw([0] * len(redrawn), scale), strict=True):
                noise[place] = drawn
        return [count + drawn for count, drawn in zip(true, noise, strict=True)]

    return add
