"""What may be learned: budgets, bounds, noise, and what they add up to. Knows nothing of ratings."""
