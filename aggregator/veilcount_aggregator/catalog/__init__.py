"""The collections that a store knows: their definitions, and a cache of them for each worker."""
