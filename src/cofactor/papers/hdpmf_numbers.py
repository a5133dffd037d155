"""The numbers that HDPMF prints (Hu and Fang), and what it calls things."""

from dataclasses import dataclass

MF, HDPMF, PDPMF, DPMF, HDPMF_R = "MF", "HDPMF", "PDPMF", "DPMF", "HDPMF-R"
METHODS = (MF, HDPMF, PDPMF, DPMF)
"""Of Table 3; HDPMF-R, without rescaling, is in Figure 8."""
MSE, MAE = "MSE", "MAE"
MEASURES = (MSE, MAE)
DIMENSIONS = (10, 5)
"""K, in the order of Table 3."""
EPSILON = 1.0
"""The promise for a rating of weight 1."""
OTHER_SAMPLES = ("douban", "yelp")
"""Sets that are other samples than the paper's: what can be compared is the order of methods."""


@dataclass(frozen=True)
class Printed:
    """A cell of Table 3."""

    mean: float
    deviation: float
    """Of 5 repeats."""
    stars: str = ""
    """HDPMF below PDPMF in a paired t-test: "***" at 99%, "**" at 95%, "*" at 90%."""


Cells = dict[str, Printed]
"""By method."""


def _cells(mf: Printed, hdpmf: Printed, pdpmf: Printed, dpmf: Printed) -> Cells:
    return dict(zip(METHODS, (mf, hdpmf, pdpmf, dpmf), strict=True))


TABLE_3: dict[str, dict[tuple[str, int], Cells]] = {
    "ml-100k": {
        (MSE, 10): _cells(
            Printed(0.9269, 0.0042), Printed(1.4690, 0.0369, "***"),
            Printed(1.5623, 0.0244), Printed(4.9264, 0.3218),
        ),
        (MSE, 5): _cells(
            Printed(0.9231, 0.0065), Printed(1.2257, 0.0187, "*"),
            Printed(1.2475, 0.0214), Printed(4.4484, 0.2955),
        ),
        (MAE, 10): _cells(
            Printed(0.7617, 0.0015), Printed(0.9356, 0.0124, "***"),
            Printed(0.9664, 0.0057), Printed(1.8811, 0.0783),
        ),
        (MAE, 5): _cells(
            Printed(0.7609, 0.0031), Printed(0.8606, 0.0045, "***"),
            Printed(0.8715, 0.0078), Printed(1.7685, 0.0719),
        ),
    },
    "ml-1m": {
        (MSE, 10): _cells(
            Printed(0.7906, 0.0012), Printed(1.0262, 0.0057, "***"),
            Printed(1.0801, 0.0192), Printed(1.8032, 0.0271),
        ),
        (MSE, 5): _cells(
            Printed(0.8067, 0.0021), Printed(0.9174, 0.0063, "***"),
            Printed(0.9399, 0.0060), Printed(1.3912, 0.0114),
        ),
        (MAE, 10): _cells(
            Printed(0.7027, 0.0007), Printed(0.7869, 0.0028, "***"),
            Printed(0.8136, 0.0065), Printed(1.0350, 0.0078),
        ),
        (MAE, 5): _cells(
            Printed(0.7104, 0.0010), Printed(0.7501, 0.0023, "***"),
            Printed(0.7635, 0.0018), Printed(0.9166, 0.0035),
        ),
    },
    "douban": {
        (MSE, 10): _cells(
            Printed(1.5403, 0.0057), Printed(4.5616, 0.1013, "***"),
            Printed(5.0464, 0.1215), Printed(5.9369, 0.0574),
        ),
        (MSE, 5): _cells(
            Printed(1.5143, 0.0079), Printed(3.6169, 0.0843, "***"),
            Printed(4.2775, 0.0676), Printed(6.1115, 0.0614),
        ),
        (MAE, 10): _cells(
            Printed(0.9569, 0.0017), Printed(1.7451, 0.0296, "***"),
            Printed(1.8677, 0.0277), Printed(2.0250, 0.0138),
        ),
        (MAE, 5): _cells(
            Printed(0.9481, 0.0020), Printed(1.4929, 0.0232, "***"),
            Printed(1.6786, 0.0155), Printed(2.0746, 0.0154),
        ),
    },
    "yelp": {
        (MSE, 10): _cells(
            Printed(1.9080, 0.0098), Printed(3.5206, 0.0184, "***"),
            Printed(3.8329, 0.0341), Printed(6.3687, 0.0081),
        ),
        (MSE, 5): _cells(
            Printed(1.9141, 0.0317), Printed(2.8944, 0.0220, "**"),
            Printed(2.9528, 0.0324), Printed(6.5986, 0.0241),
        ),
        (MAE, 10): _cells(
            Printed(1.0795, 0.0030), Printed(1.4661, 0.0052, "***"),
            Printed(1.5351, 0.0068), Printed(2.0512, 0.0021),
        ),
        (MAE, 5): _cells(
            Printed(1.0784, 0.0081), Printed(1.3062, 0.0055, "***"),
            Printed(1.3325, 0.0079), Printed(2.1211, 0.0074),
        ),
    },
}  # fmt: skip
"""By data, measure and K."""


def printed(data: str, measure: str, factors: int, method: str) -> Printed | None:
    """Return a cell of Table 3; None for what the paper does not have."""
    return TABLE_3.get(data, {}).get((measure, factors), {}).get(method)
