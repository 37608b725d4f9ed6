# %% [markdown]
# # A regression that needs nobody's numbers
#
# Do people of this age and education work longer? The 48,842 persons of Adult (census
# income) answer once, at epsilon 8: each device reports one of its numbers or the product
# of two, randomized. `exact` is what a curator finds who sees every number. Of one run in
# twenty an interval misses it. It needs no server: `veilcount-analysis[estimate]` and
# pandas, in any folder of a checkout, which has the persons in `tests/data`; elsewhere, set
# ADULT to their file.

# %%
import os
from pathlib import Path

import numpy as np
import pandas as pd

from veilcount_analysis import tally
from veilcount_analysis.kinds.features import MomentTerms, features_of, moment_figures
from veilcount_analysis.mechanisms.moments import moments_handler
from veilcount_client.testing import SeededRandomSource
from veilcount_shared import parse_collections
from veilcount_shared.mechanisms import Moments

definition = """
app = "census"

[work]
question = "How old are you, how long did you learn, how many hours do you work a week?"
features = {age = [17, 90], education = [1, 16], hours = [1, 99]}
measure = "moments"
epsilon = 8
unit = "user"
from = 2026-09-01
until = 2027-09-01
"""
work = parse_collections(definition, lambda _: [])["work"]
folders = [Path.cwd(), *Path.cwd().parents]
files = (folder / "tests" / "data" / "adult_hours.csv.gz" for folder in folders)
file = os.environ.get("ADULT") or next(path for path in files if path.exists())
groups = pd.read_csv(file)
adult = groups.loc[groups.index.repeat(groups["persons"])].drop(columns="persons")
len(adult)

# %%
mechanism = Moments.for_epsilon(work.unit_epsilon, len(features_of(work).names))
source = SeededRandomSource(0)
reports = [
    mechanism.randomize(work.domain.input(person, source), source)
    for person in adult.to_dict("records")
]
moments = moments_handler(work).means(tally(work, reports))
terms = MomentTerms(level=0.95, regress="hours")
figures = pd.DataFrame(
    [
        (row.kind, row.of, row.figure, row.low, row.high)
        for row in moment_figures(features_of(work), moments, terms)
    ],
    columns=["kind", "of", "local", "low", "high"],
)
figures[figures["kind"].isin(["mean", "deviation", "correlation"])]

# %%
design = np.column_stack([adult[["age", "education"]], np.ones(len(adult))])
exact = np.linalg.lstsq(design, adult["hours"], rcond=None)[0]
regression = figures[figures["kind"].isin(["coefficient", "intercept"])].assign(exact=exact)
regression
