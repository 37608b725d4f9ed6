# %% [markdown]
# # Which theme gets our time?
#
# Cells that Jupyter (with jupytext), VS Code and PyCharm open as they are. `VEILCOUNT_URL` and
# `VEILCOUNT_KEY`, an analyst's, are set where they start. The long one is `docs/analysing.py`.

# %%
import os

from veilcount_reader import Reader

reader = Reader(os.environ["VEILCOUNT_URL"], os.environ["VEILCOUNT_KEY"])
themes = reader.estimate("theme")
themes.adequacy  # whether there are enough reports: before any figure

# %%
themes

# %%
frame = themes.to_pandas()
frame[["of", "figure", "low", "high"]]
