import os
import stat
from pathlib import Path

import pytest

from cofactor.crypto.keys import Identity
from cofactor.data.ratings import Scale
from cofactor.errors import ConfigError, DataError, Refused
from cofactor.federation.declining import Declining
from cofactor.federation.door import COORDINATOR, SUM
from cofactor.figures import fingerprint
from cofactor.network.pins import Pins, public_key
from cofactor.network.proposal import Proposal
from cofactor.network.site import Site
from cofactor.network.sources import PeopleSource, RatingsSource, RecordsSource
from cofactor.survey.question import Question

RATINGS = "user,item,rating\n" + "".join(f"u{k % 7},i{k % 11},{k % 5 + 1}\n" for k in range(77))
PEOPLE = "id,age,income\n" + "".join(f"p{k},{20 + k},{1000 * k}\n" for k in range(10))


@pytest.fixture
def site(tmp_path: Path) -> Site:
    (tmp_path / "ratings.csv").write_text(RATINGS)
    (tmp_path / "people.csv").write_text(PEOPLE)
    return Site.create(tmp_path / "north")


def proposal_of(parties: dict[str, bytes]) -> Proposal:
    keys = {name: key.hex() for name, key in parties.items()}
    return Proposal(kind="training", session="ab" * 8, version="1", parties=keys, work={})


def test_everything_in_a_new_folder_is_its_owners_alone(site: Site) -> None:
    site.session_folder("ab" * 8)
    assert site.approvals.is_dir()
    for place, folders, files in os.walk(site.folder):
        for name in folders:
            assert stat.S_IMODE((Path(place) / name).stat().st_mode) == 0o700, name
        for name in files:
            assert stat.S_IMODE((Path(place) / name).stat().st_mode) == 0o600, name
    assert stat.S_IMODE(site.folder.stat().st_mode) == 0o700


def test_a_folder_is_read_as_it_was_written(site: Site, tmp_path: Path) -> None:
    written = site.bringing(
        RatingsSource(file=str(tmp_path / "ratings.csv"), scale="1:5", user="user", duplicates="last"),
        PeopleSource(file=str(tmp_path / "people.csv"), column="age", missing="random"),
        RecordsSource(file=str(tmp_path / "people.csv"), columns=("age",), ranges={"age": [0, 120]}),
    )
    written.write()
    assert Site.open(site.folder) == written
    assert Site.open(site.folder).name == "north"


def test_a_second_party_is_not_made_in_the_folder_of_the_first(site: Site) -> None:
    before = (site.folder / "identity.pem").read_bytes()
    with pytest.raises(Refused, match="already is a party's folder"):
        Site.create(site.folder)
    assert (site.folder / "identity.pem").read_bytes() == before


def test_a_folder_that_others_may_read_is_refused(site: Site) -> None:
    site.folder.chmod(0o755)
    with pytest.raises(Refused, match="chmod 700"):
        Site.open(site.folder)


@pytest.mark.parametrize("name", [COORDINATOR, SUM, "../north", "a/b"])
def test_names_that_mean_something_else_are_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(ConfigError):
        Site.create(tmp_path / "new", name=name)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_nobodys_says_how_to_make_one(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cofactor join new"):
        Site.open(tmp_path)


@pytest.mark.parametrize("session", ["../../etc", "AB" * 8, "ab", "", "a/" * 8])
def test_a_session_cannot_name_a_folder_elsewhere(site: Site, session: str) -> None:
    with pytest.raises(ConfigError):
        site.session_folder(session)


def test_ratings_are_read_with_the_columns_that_the_site_names(site: Site, tmp_path: Path) -> None:
    brought = site.bringing(RatingsSource(file=str(tmp_path / "ratings.csv"), scale="1:5"))
    party = brought.party(Scale(1, 5))
    assert party.name == "north"
    assert party.ratings.user_count == 7
    assert party.ledger_path == tmp_path / "ratings.csv.ledger"


def test_a_scale_that_the_site_does_not_have_is_refused(site: Site, tmp_path: Path) -> None:
    brought = site.bringing(RatingsSource(file=str(tmp_path / "ratings.csv"), scale="1:5"))
    with pytest.raises(Declining) as refused:
        brought.party(Scale(0, 10))
    assert refused.value.code == "scale"


def test_a_question_about_another_column_is_refused(site: Site, tmp_path: Path) -> None:
    brought = site.bringing(PeopleSource(file=str(tmp_path / "people.csv"), column="age"))
    assert len(brought.people(Question(name="age", low=0, high=120)).values) == 10
    with pytest.raises(Declining) as refused:
        brought.people(Question(name="income", low=0, high=120))
    assert refused.value.code == "no data"


def test_only_named_columns_become_records_and_their_ranges_are_stated(site: Site, tmp_path: Path) -> None:
    file = str(tmp_path / "people.csv")
    records = site.bringing(RecordsSource(file=file, columns=("age",), ranges={"age": [0, 120]})).records()
    assert records.columns == ("age",)
    assert records.unstated == ()
    with pytest.raises(ConfigError, match="income"):
        RecordsSource(file=file, columns=("age", "income"), ranges={"age": [0, 120]})


@pytest.mark.parametrize("what", ["party", "people", "records"])
def test_a_party_that_brings_no_such_file_has_no_data(site: Site, what: str) -> None:
    with pytest.raises(Declining) as refused:
        getattr(site, what)()
    assert refused.value.code == "no data"


def test_a_file_that_is_not_there_is_told_at_once(site: Site) -> None:
    with pytest.raises(DataError, match="nowhere"):
        site.bringing(RatingsSource(file="nowhere.csv", scale="1:5"))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('name = "north"\n[rating]\nfile = "a.csv"\n', 'Did you mean "ratings"'),
        ('name = "north"\n[ratings]\nfile = "a.csv"\nuzer = "u"\n', 'Did you mean "user"'),
        ('name = "north"\n[records]\nfile = "a.csv"\ncolumn = ["a"]\n', 'Did you mean "columns"'),
        ("[ratings]\n", "needs the party's name"),
    ],
)
def test_a_mistake_in_the_file_is_told(site: Site, text: str, words: str) -> None:
    (site.folder / "site.toml").write_text(text)
    with pytest.raises(ConfigError, match=words):
        Site.open(site.folder)


def test_a_pinned_key_changes_only_if_that_is_said(site: Site) -> None:
    old, new = Identity.generate().public, Identity.generate().public
    site.pins.pin("south", old)
    with pytest.raises(Refused, match="--replace"):
        site.pins.pin("south", new)
    assert site.pins.known == {"south": old}
    site.pins.pin("south", new, replace=True)
    assert Pins.read(site.folder / "peers.toml").known == {"south": new}


def test_two_parties_never_have_one_key(site: Site) -> None:
    key = Identity.generate().public
    site.pins.pin("south", key)
    with pytest.raises(Refused, match="key of south"):
        site.pins.pin("west", key)


def test_a_proposal_is_taken_only_among_parties_with_pinned_keys(site: Site) -> None:
    own, south, west = site.identity.public, Identity.generate().public, Identity.generate().public
    site.pins.pin("south", south)
    everybody = {"north": own, "south": south, "west": west}
    with pytest.raises(Declining, match="pin FOLDER west") as refused:
        site.pins.check(proposal_of(everybody), "north", own)
    assert refused.value.code == "unknown keys"
    site.pins.pin("west", west)
    site.pins.check(proposal_of(everybody), "north", own)
    for other in ({**everybody, "west": Identity.generate().public}, {**everybody, "north": south[::-1]}):
        with pytest.raises(Declining):
            site.pins.check(proposal_of(other), "north", own)
    with pytest.raises(Declining, match="own key"):
        site.pins.check(proposal_of({"south": south, "west": west}), "north", own)


def test_fingerprints_are_eight_groups_of_four_digits_and_differ() -> None:
    one, other = Identity.generate().public, Identity.generate().public
    assert [len(group) for group in fingerprint(one).split()] == [4] * 8
    assert fingerprint(one) != fingerprint(other)
    assert public_key(one.hex().upper() + "\n") == one
    with pytest.raises(ConfigError, match="64 hexadecimal digits"):
        public_key("abc")
