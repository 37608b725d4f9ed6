"""The estimate as it was before the kinds of question, frozen: the oracle of `test_same_figures`.

It is deleted when pages, commands and reader render the figures of `veilcount_analysis.kinds`.
"""
