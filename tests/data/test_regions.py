from itertools import pairwise

import pytest

from cofactor.data import regions
from cofactor.data.regions import REGIONS, is_zip, region_of

WELL_KNOWN = {
    "10001": "Northeast",  # New York
    "00501": "Northeast",  # Holtsville, New York
    "02139": "Northeast",  # Cambridge, Massachusetts
    "04101": "Northeast",  # Portland, Maine
    "05401": "Northeast",  # Burlington, Vermont
    "06510": "Northeast",  # New Haven
    "07030": "Northeast",  # Hoboken
    "15213": "Northeast",  # Pittsburgh
    "19104": "Northeast",  # Philadelphia
    "19801": "South",  # Wilmington, Delaware
    "20001": "South",  # Washington
    "21201": "South",  # Baltimore
    "25301": "South",  # Charleston, West Virginia
    "30301": "South",  # Atlanta
    "33101": "South",  # Miami
    "37201": "South",  # Nashville
    "39901": "South",  # Atlanta
    "41073": "South",  # Bellevue, Kentucky
    "73301": "South",  # Austin
    "73101": "South",  # Oklahoma City
    "78701": "South",  # Austin
    "88510": "South",  # El Paso
    "43004": "Midwest",  # Ohio, the first behind Kentucky
    "48104": "Midwest",  # Ann Arbor
    "55117": "Midwest",  # Saint Paul
    "57501": "Midwest",  # Pierre
    "60601": "Midwest",  # Chicago
    "63101": "Midwest",  # Saint Louis
    "68102": "Midwest",  # Omaha
    "59715": "West",  # Bozeman
    "80202": "West",  # Denver
    "82001": "West",  # Cheyenne
    "83702": "West",  # Boise
    "87501": "West",  # Santa Fe
    "89101": "West",  # Las Vegas
    "94105": "West",  # San Francisco
    "96813": "West",  # Honolulu
    "97201": "West",  # Portland, Oregon
    "99501": "West",  # Anchorage
    "00907": "other",  # San Juan, Puerto Rico
    "00801": "other",  # Virgin Islands
    "09012": "other",  # military post in Europe
    "34001": "other",  # military post in the Americas
    "96201": "other",  # military post in the Pacific
    "96910": "other",  # Guam
}


@pytest.mark.parametrize(("code", "region"), WELL_KNOWN.items())
def test_well_known_codes_lie_where_they_do(code: str, region: str) -> None:
    assert region_of(code) == region


@pytest.mark.parametrize(
    "text", ["", "V0R2M0", "K7L5J", "unknown", "1234567", "-5511", "55117-12", "12", "٩٤١٠٥"]
)
def test_whatever_is_no_zip_code_lies_elsewhere(text: str) -> None:
    assert region_of(text) == "other"
    assert not is_zip(text)


@pytest.mark.parametrize("text", ["55117-1234", "551171234", " 55117 ", "55117.0"])
def test_longer_spellings_are_read(text: str) -> None:
    assert is_zip(text)
    assert region_of(text) == "Midwest"


def test_zeros_that_a_spreadsheet_has_eaten_are_put_back() -> None:
    assert region_of("2139") == region_of("02139") == "Northeast"
    assert region_of("501") == region_of("00501") == "Northeast"
    assert region_of("907") == "other"


def test_states_are_fifty_and_the_capital_and_each_has_codes_of_its_own() -> None:
    assert len(regions._REGION_OF_STATE) == 51
    assert {state for _, _, state in regions._PREFIXES} == set(regions._REGION_OF_STATE)
    ends = [(first, last) for first, last, _ in regions._PREFIXES]
    assert all(first <= last for first, last in ends)
    assert all(last < first for (_, last), (first, _) in pairwise(ends))
    assert set(regions._REGION_OF_PREFIX.values()) == set(REGIONS[:4])
