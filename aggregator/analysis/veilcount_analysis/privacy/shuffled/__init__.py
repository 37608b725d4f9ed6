"""Shuffled batches with covers: what they reveal, and how many covers a definition needs."""

from .composed_notice import composed_epsilon as composed_epsilon
from .composed_notice import full_notice as full_notice
from .covers import best_guess as best_guess
from .covers import cover_delta as cover_delta
from .covers import cover_epsilon as cover_epsilon
from .covers import guess_after_unlucky as guess_after_unlucky
from .covers import least_covers as least_covers
from .covers import require_covers as require_covers
from .covers import shuffled_error as shuffled_error
from .honest import honest_epsilon as honest_epsilon
