"""The central path: what a trusted curator's true counts may say, and under how much noise."""

from ..errors import QueryError as QueryError
from .contribution import person_answers as person_answers
from .contribution import publishes_n as publishes_n
from .laplace import DiscreteLaplace as DiscreteLaplace
from .quantile import quantile as quantile
from .query import MOST_VALUES as MOST_VALUES
from .question import Question as Question
from .question import prepare as prepare
from .release import Forecast as Forecast
from .release import PartNoise as PartNoise
from .release import Release as Release
from .release import answer as answer
from .release import forecast as forecast
