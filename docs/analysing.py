# %% [markdown]
# # From reports to a decision
#
# A notebook over the data of the demo. It runs in any folder, with `veilcount[reader]`,
# pandas and matplotlib; `docs/analysing.md` explains each step. Serve the demo, create a
# key, and set both variables where Jupyter starts:
#
#     veilcount demo --store sqlite:///demo.db --port 8420
#     veilcount keys create --role analyst --store sqlite:///demo.db
#     export VEILCOUNT_URL=http://127.0.0.1:8420 VEILCOUNT_KEY=...

# %%
import os

from veilcount_reader import NotConfirmed, Reader

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
# A file states in each row what epsilon protects, n, and what the interval covers. With
# pyarrow or arro3, `taps.to_parquet("first_tap.parquet")` keeps the types too.

# %%
taps.to_pandas().to_csv("first_tap.csv", index=False)

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
