"""Attributes of users: private, aligned with their users, and in no text."""

from dataclasses import replace

import numpy as np
import pytest

from cofactor.data.attributes import UserAttributes
from cofactor.data.codes import Groups
from cofactor.data.coding import Coding
from cofactor.data.ratings import Ratings
from cofactor.errors import ConfigError, DataError
from cofactor.federation.federation import Federation
from cofactor.federation.party import Party
from cofactor.federation.session import terms_of
from tests.federation.making import ItemSums
from tests.federation.shops import ratings, shops

CODING = Coding.stated({"age": Groups.between(0, 60, 2), "gender": ("F", "M")})
NOTHING = [np.nan] * 4


def attributes(*ids: int, coding: Coding = CODING) -> UserAttributes:
    """User number n has the row n, n, n, n."""
    matrix = np.repeat(np.array(ids, np.float32)[:, None], coding.width, axis=1)
    return UserAttributes(coding=coding, ids=np.array(ids), matrix=matrix, source="users.csv")


def told(federation: Federation, party: str) -> list[float]:
    own = federation.party(party).attributes
    assert own is not None
    return [float(number) for number in own[:, 0]]


def test_every_party_gets_the_rows_of_its_own_users() -> None:
    known = shops().with_user_attributes(attributes(9, 3, 5, 8, 100))
    assert known.attributes is CODING
    assert known.facts.attributes is CODING
    assert known.party("north").ratings.user_ids.tolist() == [3, 4, 5]
    np.testing.assert_array_equal(told(known, "north"), [3, np.nan, 5])
    assert told(known, "south") == [8, 9]
    assert shops().facts.attributes is None


def test_devices_simulated_or_with_a_file_each_get_theirs() -> None:
    simulated = Federation.on_device(ratings(1, 2, 3)).with_user_attributes(attributes(3, 1))
    np.testing.assert_array_equal(told(simulated, "devices"), [1, np.nan, 3])
    phones = Federation.on_device([Party(name=f"phone{n}", ratings=ratings(n)) for n in (1, 2)])
    # That a device has no attributes must not show.
    known = phones.with_user_attributes(attributes(1))
    assert told(known, "phone1") == [1]
    np.testing.assert_array_equal(told(known, "phone2"), [np.nan])


def test_parties_may_have_a_table_each() -> None:
    both = Federation.horizontal(
        [Party(name="north", ratings=ratings(1, 2, items=3)), Party(name="south", ratings=ratings(1, 3))]
    )
    with pytest.raises(DataError, match=r"occur at two parties.*a table of its own"):
        both.with_user_attributes(attributes(1, 2, 3))
    known = both.with_user_attributes({"north": attributes(2, 1), "south": attributes(3)})
    assert told(known, "north") == [1, 2]
    np.testing.assert_array_equal(told(known, "south"), [np.nan, 3])
    with pytest.raises(ConfigError, match="one table of user attributes for each of north, south"):
        both.with_user_attributes({"north": attributes(1)})
    other = Coding.stated({"gender": ("F", "M")})
    with pytest.raises(DataError, match="coded in different ways"):
        both.with_user_attributes({"north": attributes(1), "south": attributes(1, coding=other)})


def test_a_table_about_other_people_is_refused_without_naming_anyone() -> None:
    with pytest.raises(DataError, match=r"users\.csv describes none of the users of south") as caught:
        shops().with_user_attributes(attributes(3, 777))
    assert not any(digit in str(caught.value) for digit in "3789")
    with pytest.raises(DataError, match="describes none of these users"):
        Federation.on_device(ratings(1, 2)).with_user_attributes(attributes(777))


def test_vertical_parties_are_refused() -> None:
    halves = [
        Party(name=name, ratings=Ratings.from_arrays([1, 2], [item, item], [1.0, 5.0]))
        for name, item in (("books", 1), ("films", 2))
    ]
    with pytest.raises(ConfigError, match="vertical one have the same users"):
        Federation.vertical(halves).with_user_attributes(attributes(1, 2))


def test_attributes_stay_with_their_users_when_ratings_are_divided() -> None:
    known = shops().with_user_attributes(attributes(3, 4, 5, 8, 9))
    for part in known.split(0.25):
        assert part.facts.attributes is CODING
        assert told(part, "north") == [3, 4, 5]
        assert told(part, "south") == [8, 9]


def test_attributes_stay_with_their_users_when_users_are_divided() -> None:
    known = shops().with_user_attributes(attributes(3, 4, 5, 8, 9))
    warm, cold = known.divided(lambda r: (r.select(users=slice(1, None)), r.select(users=slice(0, 1))))
    assert (told(warm, "north"), told(cold, "north")) == ([4, 5], [3])
    assert (told(warm, "south"), told(cold, "south")) == ([9], [8])
    for chosen in ([2, 0], [2, 0, 1]):
        turned = known.party("north").with_ratings(known.party("north").ratings.select(users=chosen))
        assert turned.attributes is not None
        assert (
            turned.attributes[:, 0].tolist()
            == turned.ratings.user_ids.tolist()
            == [[3, 4, 5][at] for at in chosen]
        )
    newcomer = known.party("north").with_ratings(ratings(3, 99))
    assert newcomer.attributes is not None
    np.testing.assert_array_equal(newcomer.attributes, [[3] * 4, NOTHING])


def test_attributes_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"attributes have shape \(2, 4\) for 3 users"):
        Party(name="north", ratings=ratings(1, 2, 3), attributes=np.zeros((2, 4), np.float32))
    alone = replace(shops().parties[0], attributes=np.zeros((3, 4), np.float32))
    federation = replace(shops(), parties=(alone, shops().parties[1]))
    with pytest.raises(DataError, match="north has attributes that are not coded"):
        federation.facts  # noqa: B018
    with pytest.raises(DataError, match="south has attributes that are not coded"):
        replace(federation, attributes=CODING).facts  # noqa: B018


def test_no_text_shows_attributes() -> None:
    known = shops().with_user_attributes(attributes(3, 4, 5, 8, 9))
    for party in known.parties:
        assert "attributes" not in repr(party)
    assert "array" not in repr(known)


def test_a_training_goes_on_only_with_the_same_attributes() -> None:
    def terms(federation: Federation) -> dict[str, object]:
        return terms_of(ItemSums(), None, federation, 0)

    without, known = terms(shops()), terms(shops().with_user_attributes(attributes(3, 4, 5, 8, 9)))
    assert known == terms(shops().with_user_attributes(attributes(3, 4, 5, 8, 9)))
    fewer = terms(shops().with_user_attributes(attributes(3, 5, 8, 9)))
    stated = Coding.stated({"age": Groups.between(0, 80, 2), "gender": ("F", "M")})
    other = terms(shops().with_user_attributes(attributes(3, 4, 5, 8, 9, coding=stated)))
    assert without["attributes"] is None
    assert known["parties"] != without["parties"]
    assert known["parties"] != fewer["parties"]
    assert known["parties"] == other["parties"]
    assert known["attributes"] != other["attributes"]


def test_attributes_of_a_device_without_ratings_cannot_be_guessed_from_what_is_kept() -> None:
    # Attributes take few values: a hash of nothing else would give them away.
    silent = ratings(3).where(np.zeros(4, np.bool_))
    assert silent.user_count == 1

    def kept(row: float) -> dict[str, object]:
        devices = [
            Party(name="one", ratings=silent, attributes=np.full((1, 4), row, np.float32)),
            Party(name="two", ratings=ratings(8), attributes=np.full((1, 4), 5, np.float32)),
        ]
        federation = Federation.on_device(devices)
        return dict(terms_of(ItemSums(), None, replace(federation, attributes=CODING), 0)["parties"])

    assert kept(0.0) == kept(1.0)
