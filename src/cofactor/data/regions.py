"""US zip codes and the four regions of the Census Bureau, by the first three digits."""

import re

OTHER = "other"
"""Islands, military post, codes of other countries, and whatever is no zip code."""
REGIONS = ("Northeast", "Midwest", "South", "West", OTHER)

_STATES = {
    "Northeast": "CT MA ME NH NJ NY PA RI VT",
    "Midwest": "IA IL IN KS MI MN MO ND NE OH SD WI",
    "South": "AL AR DC DE FL GA KY LA MD MS NC OK SC TN TX VA WV",
    "West": "AK AZ CA CO HI ID MT NM NV OR UT WA WY",
}

# The first and the last three digits of each state's codes. What is missing is Puerto Rico and the Virgin
# Islands (006-009), military post (090-098, 340, 962-966), Guam and its neighbours (969), or not given out.
_PREFIXES = (
    (5, 5, "NY"), (10, 27, "MA"), (28, 29, "RI"), (30, 38, "NH"), (39, 49, "ME"), (50, 59, "VT"),
    (60, 69, "CT"), (70, 89, "NJ"), (100, 149, "NY"), (150, 196, "PA"), (197, 199, "DE"), (200, 205, "DC"),
    (206, 219, "MD"), (220, 246, "VA"), (247, 268, "WV"), (270, 289, "NC"), (290, 299, "SC"),
    (300, 319, "GA"), (320, 339, "FL"), (341, 349, "FL"), (350, 369, "AL"), (370, 385, "TN"),
    (386, 397, "MS"), (398, 399, "GA"), (400, 427, "KY"), (430, 459, "OH"), (460, 479, "IN"),
    (480, 499, "MI"), (500, 528, "IA"), (530, 549, "WI"), (550, 567, "MN"), (569, 569, "DC"),
    (570, 577, "SD"), (580, 588, "ND"), (590, 599, "MT"), (600, 629, "IL"), (630, 658, "MO"),
    (660, 679, "KS"), (680, 693, "NE"), (700, 714, "LA"), (716, 729, "AR"), (730, 732, "OK"),
    (733, 733, "TX"), (734, 749, "OK"), (750, 799, "TX"), (800, 816, "CO"), (820, 831, "WY"),
    (832, 838, "ID"), (840, 847, "UT"), (850, 865, "AZ"), (870, 884, "NM"), (885, 885, "TX"),
    (889, 898, "NV"), (900, 961, "CA"), (967, 968, "HI"), (970, 979, "OR"), (980, 994, "WA"),
    (995, 999, "AK"),
)  # fmt: skip

_REGION_OF_STATE = {state: region for region, states in _STATES.items() for state in states.split()}
_REGION_OF_PREFIX = {
    f"{prefix:03d}": _REGION_OF_STATE[state]
    for first, last, state in _PREFIXES
    for prefix in range(first, last + 1)
}
_ZIP = re.compile(r"(\d{3,5})(\.0)?|(\d{5})-?\d{4}", re.ASCII)


def is_zip(text: str) -> bool:
    """Say whether a text has the form of a US zip code: 94105, 94105-1234 or 941051234.

    Three and four digits are codes whose leading zeros a spreadsheet has eaten: 2139 is 02139.
    """
    return _ZIP.fullmatch(text.strip()) is not None


def region_of(zip_code: str) -> str:
    """Return the region of a US zip code, one of `REGIONS`; whatever is none lies in "other"."""
    found = _ZIP.fullmatch(zip_code.strip())
    if found is None:
        return OTHER
    digits = (found.group(1) or found.group(3)).zfill(5)
    return _REGION_OF_PREFIX.get(digits[:3], OTHER)
