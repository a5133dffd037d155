"""Plain matrix factorization: models, the ways to fit them, and the baselines beside them."""
