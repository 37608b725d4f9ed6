"""The central path: what a trusted curator's true counts may say, and under how much noise."""

from ..errors import QueryError as QueryError
from ..series.public_n import publishes_n as publishes_n
from . import query_types as query_types
from .discrete_laplace import DiscreteLaplaceNoise as DiscreteLaplaceNoise
from .priced_query import PricedQuery as PricedQuery
from .priced_query import price_query as price_query
from .quantile import quantile as quantile
from .query_types.histogram_query import MAX_HISTOGRAM_VALUES as MAX_HISTOGRAM_VALUES
from .release import Forecast as Forecast
from .release import PartNoise as PartNoise
from .release import Release as Release
from .release import draw_release as draw_release
from .release import forecast as forecast
from .sensitivity import person_contributions as person_contributions
