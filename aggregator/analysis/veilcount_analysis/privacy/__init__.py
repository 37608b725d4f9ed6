"""What a person reveals: budgets, amplification, covers, trust models."""
