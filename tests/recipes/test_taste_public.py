import numpy as np

from cofactor.factors.bayes_told import Evidence, Told
from cofactor.recipes import taste_public


def test_tastes_are_posterior_means() -> None:
    random = np.random.default_rng(0)
    users, features = 1500, 2
    combinations = random.normal(size=(3, 3 + features))
    roots = random.normal(size=(users, 3, 2))  # not of full rank
    precision, information = roots @ roots.transpose(0, 2, 1), random.normal(size=(users, 3))
    told = Told(combinations, users, lambda part: Evidence(precision[part], information[part]))
    found = taste_public._tastes(told)
    prior = np.diag(1 / np.array([0.2, 0.05, 0.05, 0.02, 0.12]))
    for user in (0, 1, 1023, 1024, 1499):
        full = prior + combinations.T @ precision[user] @ combinations
        expected = np.linalg.solve(full, combinations.T @ information[user])
        np.testing.assert_allclose(found[user], expected, rtol=1e-8, atol=1e-12)
