"""The numbers that PrivMVMF prints (Mai and Pang), and what it calls things."""

EXISTING, COLD_USER, COLD_ITEM = "existing user and item", "cold-start user", "cold-start item"
SCENARIOS = (EXISTING, COLD_USER, COLD_ITEM)
"""Of Table IV."""
NDCG, PRECISION, RECALL, F1 = "NDCG@10", "precision", "recall", "F1"
MEASURES = (NDCG, PRECISION, RECALL, F1)
FED, PRIV = "FedMVMF", "PrivMVMF"
"""Gradients as they are, and under encryption."""
LOCAL, AGGREGATION, DECRYPTION, SERVER = "local update", "aggregation", "decryption", "server update"
PHASES = (LOCAL, AGGREGATION, DECRYPTION, SERVER)
"""Of Table V; the first is for each user, the others for each round."""


def _by(columns: tuple[str, ...], *numbers: float) -> dict[str, float]:
    return dict(zip(columns, numbers, strict=True))


TABLE_4 = {
    EXISTING: {
        FED: _by(MEASURES, 0.8304, 0.2677, 0.2092, 0.2348),
        PRIV: _by(MEASURES, 0.8313, 0.2931, 0.2208, 0.2519),
    },
    COLD_USER: {
        FED: _by(MEASURES, 0.7060, 0.2668, 0.0404, 0.0701),
        PRIV: _by(MEASURES, 0.7090, 0.2728, 0.0423, 0.0733),
    },
    COLD_ITEM: {
        FED: _by(MEASURES, 0.8208, 0.1781, 0.2497, 0.2075),
        PRIV: _by(MEASURES, 0.8193, 0.1735, 0.2563, 0.2064),
    },
}
"""MovieLens 1M, films that the tag genome describes: means of 5 repeats."""
DEVIATIONS_4 = {
    EXISTING: {
        FED: _by(MEASURES, 0.0008, 0.0034, 0.0048, 0.0043),
        PRIV: _by(MEASURES, 0.0003, 0.0047, 0.0034, 0.0040),
    },
    COLD_USER: {
        FED: _by(MEASURES, 0.0042, 0.0076, 0.0010, 0.0017),
        PRIV: _by(MEASURES, 0.0092, 0.0081, 0.0015, 0.0024),
    },
    COLD_ITEM: {
        FED: _by(MEASURES, 0.0028, 0.0077, 0.0114, 0.0021),
        PRIV: _by(MEASURES, 0.0069, 0.0082, 0.0289, 0.0127),
    },
}
"""The standard deviations that stand behind them."""
TABLE_5 = {
    FED: _by((LOCAL, AGGREGATION, SERVER), 0.0195, 3.2878, 0.1912),
    PRIV: _by(PHASES, 3.0787, 239.2998, 97.5748, 0.3334),
}
"""Seconds on a server of 32 cores; one decrypter."""

SEMI_OBS, SEMI_INCL = "SemiALS, ObsOnly", "SemiALS, InclUnc"
SGD_OBS, SGD_INCL = "SGD, ObsOnly", "SGD, InclUnc"
ATTACKED = (SEMI_OBS, SEMI_INCL, SGD_OBS, SGD_INCL)
"""Scenarios of the server's attack: Tables III and VI, Figures 1 to 3."""
RATING, ATTRIBUTE = "rating", "attribute"
TABLE_3 = {
    SEMI_OBS: _by((RATING, ATTRIBUTE), 0.9911, 0.9991),
    SEMI_INCL: _by((RATING, ATTRIBUTE), 0.8785, 0.8898),
    SGD_OBS: _by((RATING, ATTRIBUTE), 0.8223, 0.9230),
    SGD_INCL: _by((RATING, ATTRIBUTE), 0.8182, 0.8474),
}
"""Accuracy of the server's reconstruction, MovieLens 1M (equation 43)."""
HYBR, BROYDEN, SCALAR, ANDERSON = "Hybr", "Broyden", "Scalar", "Anderson"
TABLE_6 = {
    SEMI_OBS: {
        HYBR: _by((RATING, ATTRIBUTE), 0.91, 0.99),
        BROYDEN: _by((RATING, ATTRIBUTE), 0.91, 0.94),
        SCALAR: _by((RATING, ATTRIBUTE), 0.01, 0.35),
        ANDERSON: _by((RATING, ATTRIBUTE), 0.55, 0.78),
    },
    SEMI_INCL: {
        BROYDEN: _by((RATING, ATTRIBUTE), 0.53, 0.60),
        SCALAR: _by((RATING, ATTRIBUTE), 0.89, 0.89),
        ANDERSON: _by((RATING, ATTRIBUTE), 0.49, 0.46),
    },
    SGD_OBS: {
        HYBR: _by((RATING, ATTRIBUTE), 0.60, 0.86),
        BROYDEN: _by((RATING, ATTRIBUTE), 0.73, 0.85),
        SCALAR: _by((RATING, ATTRIBUTE), 0.66, 0.74),
        ANDERSON: _by((RATING, ATTRIBUTE), 0.77, 0.88),
    },
    SGD_INCL: {
        HYBR: _by((RATING, ATTRIBUTE), 0.82, 0.84),
        BROYDEN: _by((RATING, ATTRIBUTE), 0.71, 0.73),
        SCALAR: _by((RATING, ATTRIBUTE), 0.24, 0.42),
        ANDERSON: _by((RATING, ATTRIBUTE), 0.57, 0.62),
    },
}
"""The same by method, on 100 users; the method that Table III takes has the highest rating accuracy."""
