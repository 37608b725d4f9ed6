# %% [markdown]
# # From reports to a decision
#
# A notebook over the data of the demo, in cells that Jupyter (with jupytext), VS Code and
# PyCharm open as they are. [Analysing](analysing.md) explains each step. Serve the demo,
# create a key, and set both variables where Jupyter starts:
#
#     veilcount demo --store sqlite:///demo.db --port 8420
#     veilcount keys create --role analyst --store sqlite:///demo.db
#     export VEILCOUNT_URL=http://127.0.0.1:8420 VEILCOUNT_KEY=...

# %%
import os

import numpy as np
import pandas as pd

from veilcount_analysis import tally
from veilcount_analysis.kinds.moment_figures import MomentTerms, features_of, moment_figures
from veilcount_analysis.mechanisms.moments import moments_handler
from veilcount_client.testing import SeededRandomSource
from veilcount_reader import NotConfirmed, Reader
from veilcount_shared import parse_collections
from veilcount_shared.mechanisms import Moments

reader = Reader(os.environ["VEILCOUNT_URL"], os.environ["VEILCOUNT_KEY"])
{each["name"]: each["reports"] for each in reader.collections()}

# %% [markdown]
# ## Are there enough reports?
#
# The verdict comes before any figure. What is not usable is noise, however clear it looks.

# %%
taps = reader.estimate("first_tap")
taps.adequacy

# %% [markdown]
# ## The estimate
#
# A table and a drawing. Each interval is that of the value on its own.

# %%
taps

# %%
taps.plot()

# %% [markdown]
# ## A decision between two arms
#
# One half of the devices has a list as its home screen, the other half a map. The rule was
# set before looking: the map stays if it makes *nearby* the first tap at least 5 points
# more often, and the difference is significant with all values compared at once
# (`differs`).

# %%
compared = reader.compare("first_tap", "home:list", "home:map")
compared.sentence

# %%
differences = compared.to_pandas().set_index("value")
differences[["difference", "low", "high", "holm", "differs"]]

# %%
least = 0.05
nearby = differences.loc["nearby"]  # the share on the list less that on the map
map_stays = bool(nearby["differs"] and nearby["high"] < -least)
map_stays

# %% [markdown]
# ## Over time
#
# Small multiples, a panel for each value. Months that still take reports (`open_period`)
# will change.

# %%
dark = reader.estimate("dark_map", by="month")
dark.plot()

# %%
months = dark.to_pandas()
closed = months[~months["open_period"] & (months["of"] == "true")]
closed[["from", "n", "figure", "low", "high"]]

# %% [markdown]
# ## A long list
#
# All 2,000 trails, the largest share first. Of 2,000 intervals some are above 0 by chance:
# which trails are wanted at all is decided by the simultaneous interval, that of all values
# at once.

# %%
trails = reader.estimate("trail").to_pandas()
wanted = trails[trails["simultaneous_low"] > 0]
wanted[["of", "figure", "low", "high", "simultaneous_low"]]

# %% [markdown]
# ## A number
#
# Its mean, its quantiles, and the share of walks that are shorter than each edge.

# %%
walks = reader.estimate("walk_minutes")
walks.to_pandas("quantile")

# %%
walks.plot()

# %% [markdown]
# ## Checking a share by hand
#
# `count` reports support the value: with probability P those that have it, with probability
# Q any other.

# %%
first = taps.to_pandas().iloc[0]
by_hand = (first["count"] / first["n"] - first["Q"]) / (first["P"] - first["Q"])
by_hand, first["figure"]

# %% [markdown]
# ## Keeping the figures
#
# A file states in each row what epsilon protects, n, and what the interval covers.

# %%
taps.to_parquet("first_tap.parquet")

# %% [markdown]
# ## A trusted curator
#
# Releases of a central collection cost a budget that does not come back. Without
# `confirm=True` the price is stated and nothing is spent.

# %%
releases = reader.releases("way_there_central")
releases

# %%
budget = releases.remaining()
untouched = budget[budget["spent"] == "0"].iloc[0]
try:
    reader.release(
        "way_there_central", "histogram", "0.5", from_=untouched["from"], to=untouched["to"]
    )
except NotConfirmed as stated:
    price = str(stated)
price

# %% [markdown]
# ## A regression that needs nobody's numbers
#
# Do people of this age and education work longer? The 48,842 persons of Adult (census
# income, in the folder `tests/data` of the repository) answer once, at epsilon 8: each
# device reports one of its numbers or the product of two, randomized. `exact` is
# what a curator finds who sees every number. Of one run in twenty an interval misses it.

# %%
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
groups = pd.read_csv(os.environ.get("ADULT", "tests/data/adult_hours.csv.gz"))
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
