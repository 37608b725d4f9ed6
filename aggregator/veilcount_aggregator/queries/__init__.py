"""From a checked query to its result: what the API, the dashboard and the CLI show."""

from veilcount_analysis.kinds.estimate_query import Denominator as Denominator
from veilcount_analysis.kinds.estimate_query import EstimateQuery as EstimateQuery
from veilcount_analysis.kinds.estimate_query import GroupBy as GroupBy

from ..json_results import decoded as decoded
from ..json_results import encode as encode
from ..json_results import plain as plain
from .alert import Alert as Alert
from .budgets import BudgetQuery as BudgetQuery
from .budgets import BudgetResult as BudgetResult
from .budgets import budget as budget
from .collection_list import CollectionList as CollectionList
from .collection_list import list_collections as list_collections
from .comparison import CompareQuery as CompareQuery
from .comparison import CompareResult as CompareResult
from .comparison import compare as compare
from .contrasts import ContrastQuery as ContrastQuery
from .contrasts import ContrastResult as ContrastResult
from .contrasts import contrast as contrast
from .declared import BUDGET as BUDGET
from .declared import COLLECTION_QUERIES as COLLECTION_QUERIES
from .declared import COMPARE as COMPARE
from .declared import CONTRAST as CONTRAST
from .declared import CollectionQuery as CollectionQuery
from .estimate import estimate as estimate
from .estimate import estimate_table as estimate_table
from .estimate_schema import EstimateResult as EstimateResult
from .plans import PlanQuery as PlanQuery
from .plans import plan as plan
from .snapshot import CollectionNotFound as CollectionNotFound
from .snapshot import Snapshot as Snapshot
from .snapshot import Tallies as Tallies
