"""The numbers that dpmf-rp prints, and on which data."""

from cofactor.papers.dpmf_rp_measures import MEASURES

ML100K, ML5M, YELP = "ML100K", "ML5M", "Yelp"
STANDS_FOR = {"ml-100k": ML100K, "ml-1m": ML5M, "yelp": YELP}
"""The paper's name for the data that a known set is compared with."""
OTHER_DATA = {
    "ml-1m": "the paper's numbers are for half of MovieLens 10M (34,939 users, 5,338 films).",
    "yelp": "the paper's numbers are for another sample of it (10,000 users, 30,000 restaurants).",
}
"""What to know about a set that is not the paper's own."""
CENTRAL, DPMF_RP = "CentralMF", "DPMF-RP"
CASES = ("case 1: not private", "case 2: no secure sum", "case 3: not projected", "case 4: no noise")
"""Of Table 6."""

Numbers = dict[str, dict[str, dict[str, float]]]
"""By data, line and column."""


def _numbers(table: dict[str, dict[str, tuple[float, ...]]]) -> Numbers:
    return {
        data: {line: dict(zip(MEASURES, row, strict=True)) for line, row in lines.items()}
        for data, lines in table.items()
    }


TABLE_2 = _numbers(
    {
        ML100K: {
            CENTRAL: (0.9968, 0.2776, 0.2418, 0.2451, 0.1395),
            DPMF_RP: (1.0083, 0.1965, 0.2472, 0.2189, 0.1158),
        },
        ML5M: {
            CENTRAL: (0.9007, 0.2955, 0.2013, 0.2394, 0.1178),
            DPMF_RP: (0.9459, 0.1822, 0.2329, 0.2045, 0.1150),
        },
        YELP: {
            CENTRAL: (1.0008, 0.0414, 0.0826, 0.0571, 0.0299),
            DPMF_RP: (1.0355, 0.0379, 0.0869, 0.0528, 0.0276),
        },
    }
)
TABLE_7 = _numbers(
    {
        ML100K: {
            CASES[0]: (1.00, 0.27, 0.23, 0.24, 0.13),
            CASES[1]: (1.10, 0.12, 0.13, 0.13, 0.05),
            CASES[2]: (1.01, 0.23, 0.26, 0.24, 0.13),
            CASES[3]: (1.01, 0.20, 0.24, 0.22, 0.11),
        },
        ML5M: {
            CASES[0]: (0.94, 0.27, 0.18, 0.22, 0.12),
            CASES[1]: (1.03, 0.11, 0.15, 0.13, 0.06),
            CASES[2]: (0.95, 0.20, 0.24, 0.22, 0.12),
            CASES[3]: (0.94, 0.19, 0.23, 0.20, 0.11),
        },
        YELP: {
            CASES[0]: (1.00, 0.04, 0.08, 0.06, 0.03),
            CASES[1]: (1.26, 0.03, 0.06, 0.04, 0.02),
            CASES[2]: (1.03, 0.04, 0.08, 0.05, 0.03),
            CASES[3]: (1.04, 0.04, 0.09, 0.05, 0.03),
        },
    }
)
GROUPS = ("[0, 25)", "[25, 50)", "[50, 100)", "[100, 500)", "[500, ...)")
"""Of Table 5: users by how many ratings they have."""
VARIANCE = "variance"
TABLE_5 = {
    CENTRAL: dict(zip((*GROUPS, VARIANCE), (1.81, 2.04, 1.35, 1.02, 0.78, 0.23), strict=True)),
    DPMF_RP: dict(zip((*GROUPS, VARIANCE), (2.21, 2.09, 1.38, 1.07, 0.81, 0.31), strict=True)),
}
