"""The central path: a trusted curator's true counts, released under noise and a budget."""

from . import query_types as query_types
from .discrete_gaussian import DiscreteGaussianNoise as DiscreteGaussianNoise
from .discrete_laplace import DiscreteLaplaceNoise as DiscreteLaplaceNoise
from .noise_kinds import NoiseKind as NoiseKind
from .priced_query import PricedQuery as PricedQuery
from .priced_query import price_query as price_query
from .quantile import quantile as quantile
from .query_types.histogram_query import MAX_HISTOGRAM_VALUES as MAX_HISTOGRAM_VALUES
from .release import PartNoise as PartNoise
from .release import Release as Release
from .release import draw_release as draw_release
from .release import part_noise as part_noise
