"""Analyses of definitions and populations: budgets, trust models, plans, simulations, audits."""
