"""The face: every attack by its name, on what it is for, and a clear word elsewhere."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from cofactor.attacks.audit import _BY_NAME, _judged, audit
from cofactor.attacks.result import ATTACKS, Audit, told
from cofactor.cluster.clustering import find_clusters
from cofactor.cluster.records import Records
from cofactor.cluster.simple import IndependentCounts
from cofactor.crypto.shared_key import SharedKey
from cofactor.data.ratings import Ratings
from cofactor.data.synthetic import Shape, make
from cofactor.errors import CofactorError, ConfigError, Refused, RunError
from cofactor.federation.federation import Federation
from cofactor.federation.folder import read_audits
from cofactor.federation.party import Party
from cofactor.federation.run import Run
from cofactor.federation.verify import verify
from cofactor.federation.view import Capture
from cofactor.privacy.budget import Budget
from cofactor.privacy.guarantee import Guarantee
from cofactor.privacy.personal import PersonalBudget
from cofactor.privacy.weights import Weights
from cofactor.randomness import InsecureRandom
from cofactor.recipes.hdpmf import HDPMF
from cofactor.recipes.multiview import MultiViewMF
from cofactor.recipes.opened_sums import EncryptedSum
from cofactor.recipes.personal_biases import PersonalBiases
from cofactor.recipes.pooled import Pooled
from cofactor.recipes.shared_biases import SharedBiases
from cofactor.recipes.sums import IdealSum, PlainSum
from cofactor.recipes.train import train
from cofactor.survey.asking import ask
from cofactor.survey.people import People
from cofactor.survey.question import Question
from cofactor.survey.reading import read_people

USER = Budget(epsilon=4.0, delta=1e-6, unit="user")


def ratings() -> Ratings:
    return make(Shape(users=60, items=25, ratings=700, minimum=4), seed=3).ratings


def phones(count: int = 20) -> Federation:
    """Return a few phones, one user each."""
    return Federation.on_device(
        [Party(name=f"phone {user}", ratings=ratings().select(users=[user])) for user in range(count)],
        scale=ratings().scale,
    )


def shops() -> Federation:
    parts = [slice(0, 20), slice(20, 40)]
    parties = [Party(name=f"shop {at}", ratings=ratings().select(users=own)) for at, own in enumerate(parts)]
    return Federation.horizontal(parties)


@pytest.fixture(scope="module")
def open_phones() -> Run:
    return train(MultiViewMF(rounds=3, aggregate=PlainSum()), phones(), capture="coordinator")


@pytest.fixture(scope="module")
def private_shops() -> Run:
    return train(
        SharedBiases(aggregate=IdealSum()),
        shops(),
        budget=USER,
        capture=["coordinator", "party:shop 0"],
        random=InsecureRandom(1),
    )


def number(found: Audit, name: str) -> float:
    value = found.figures[name]
    assert isinstance(value, float | int)
    return value


def test_plain_gradients_are_read(open_phones: Run) -> None:
    found = audit(open_phones, "reconstruction")
    assert found.verdict == "succeeded"
    assert number(found, "rated items right") > 0.99
    assert number(found, "rated items right, trivial guess") < 0.6
    assert "SIMULATION" in str(found)


def test_first_round_is_read_as_well() -> None:
    """Vectors are tiny then, and hardly explain any rating."""
    run = train(MultiViewMF(rounds=1, aggregate=PlainSum()), phones(8), capture="coordinator")
    assert number(audit(run, "reconstruction"), "rated items right") > 0.99


def test_sums_are_not(open_phones: Run) -> None:
    hidden = train(MultiViewMF(rounds=3, aggregate=IdealSum()), phones(), capture="coordinator")
    found = audit(hidden, "reconstruction")
    assert found.verdict == "resisted"
    assert found.figures["uploads seen"] == "sums only"
    assert number(found, "rated items right") < number(found, "rated items right, trivial guess") + 0.05
    assert number(audit(open_phones, "reconstruction"), "rated items right") > 0.99


def test_one_key_for_all_opens_every_upload_to_one_who_tells() -> None:
    """Sharp edge 15: whoever has the key, and what the coordinator was sent, reads single uploads."""
    recipe = MultiViewMF(rounds=2, aggregate=EncryptedSum(scheme=SharedKey(bits=1024)))
    run = train(recipe, phones(4), capture=["coordinator", "party:phone 0"])
    alone = audit(run, "reconstruction")
    together = audit(run, "reconstruction", seen_by="coordinator+party:phone 0")
    assert (alone.verdict, alone.figures["uploads seen"]) == ("resisted", "sums only")
    assert together.figures["uploads seen"] == "of single users"
    assert number(together, "rated items right") > 0.99


def test_members_of_a_model_are_asked_for(private_shops: Run) -> None:
    found = audit(private_shops, "membership", data=ratings())
    assert found.verdict in ("resisted", "succeeded")
    assert (found.figures["members"], found.figures["others"]) == (40, 20)
    assert 0.2 < number(found, "AUC") < 0.8
    assert any("coins" in note for note in found.notes)
    public = audit(private_shops, "membership", data=ratings(), seen_by="public")
    assert public.seen_by == "public"
    assert any("published model alone" in note for note in public.notes)


def test_who_colludes_sees_the_rest(private_shops: Run) -> None:
    found = audit(private_shops, "collusion", seen_by="coordinator+party:shop 0")
    assert found.figures["honest parties"] == 1
    assert found.seen_by == "coordinator+party:shop 0"


def test_differencing_is_for_uploads_of_hdpmf(open_phones: Run) -> None:
    recipe = HDPMF(rounds=3, factors=2, aggregate=IdealSum())
    run = train(recipe, phones(4), budget=USER, capture="coordinator")
    found = audit(run, "differencing")
    assert found.verdict == "resisted"
    assert number(found, "ratings right") < number(found, "ratings right, trivial guess") + 0.1
    with pytest.raises(ConfigError, match="MultiViewMF"):
        audit(open_phones, "differencing")


def test_canaries_are_planted_in_what_was_captured(private_shops: Run) -> None:
    found = audit(private_shops, "canaries", canaries=60, random=InsecureRandom(2))
    assert found.verdict == "consistent"
    assert found.figures["epsilon promised"] == pytest.approx(private_shops.guarantee.epsilon, rel=0.05)
    assert number(found, "epsilon proved at least") <= USER.epsilon


def test_canaries_are_planted_among_parties_that_are_given(tmp_path: Path) -> None:
    """As for parties with files: their ledgers stay as they are."""
    federation = shops()
    run = train(SharedBiases(), federation, budget=USER)
    folder = run.save(tmp_path / "run")
    with pytest.raises(ConfigError, match=r"data=federation.*cofactor audit RUN"):
        audit(folder)
    found = audit(folder, data=federation, canaries=40, random=InsecureRandom(3))
    assert found.verdict == "consistent"
    with pytest.raises(ConfigError, match="parties were horizontal"):
        audit(folder, data=phones())
    with pytest.raises(ConfigError, match="in a Federation"):
        audit(folder, data=ratings())


def test_survey_and_clustering_are_audited_by_made_up_people(tmp_path: Path) -> None:
    survey = ask(
        People(name="town", values=np.linspace(0, 1, 50)), Question(name="age", low=0, high=1), epsilon=1.0
    )
    found = audit(survey.save(tmp_path / "survey"), canaries=400, random=InsecureRandom(4))
    assert found.verdict == "consistent"
    assert 0.3 < number(found, "epsilon proved at least") <= 1.0
    assert found.figures["mu promised"] is not None
    chance = np.random.default_rng(5)
    records = [
        Records(
            name=name,
            ids=tuple(map(str, range(60))),
            columns=("x",),
            values=chance.uniform(-1, 1, (60, 1)),
            ranges={"x": (-1.0, 1.0)},
        )
        for name in ("bank", "shop")
    ]
    clusters = find_clusters(
        records, clusters=2, budget=USER, method=IndependentCounts(), local_clusters=4, align="ids"
    )
    found = audit(clusters.save(tmp_path / "clusters"), canaries=30, random=InsecureRandom(6))
    assert found.verdict == "consistent"
    assert "IndependentCounts" in found.headline
    with pytest.raises(ConfigError, match=r"a survey, and no training.*canaries"):
        audit(survey, "reconstruction")


def test_what_is_found_stays_in_the_run_folder(open_phones: Run, tmp_path: Path) -> None:
    folder = open_phones.save(tmp_path / "run")
    found = audit(folder, "reconstruction")
    audit(str(folder), "reconstruction")
    kept = read_audits(folder)
    assert list(kept) == ["reconstruction-coordinator-1", "reconstruction-coordinator-2"]
    assert {**kept["reconstruction-coordinator-1"], "run": None, "seal": None} == {
        **found.as_json(), "run": None, "seal": None,
    }  # fmt: skip
    assert verify(folder).holds


@pytest.mark.parametrize("attack", [each for each in ATTACKS if each not in ("canaries", "membership")])
def test_run_without_captured_messages_says_so(attack: str) -> None:
    run = train(SharedBiases(), shops(), budget=USER)
    with pytest.raises(RunError, match=r"kept no messages.*--capture coordinator"):
        audit(run, attack)


def test_every_attack_has_a_name() -> None:
    assert tuple(_BY_NAME) == ATTACKS


def test_mistakes_are_told(open_phones: Run, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="attack must be one of"):
        audit(open_phones, "magic")
    with pytest.raises(ConfigError, match="confidence"):
        audit(open_phones, "canaries", confidence=95)
    with pytest.raises(ConfigError, match="canaries"):
        audit(open_phones, "canaries", canaries=0)
    with pytest.raises(RunError, match="was not captured"):
        audit(open_phones, "reconstruction", seen_by="party:phone 3")
    with pytest.raises(ConfigError, match="users who were in and of others"):
        audit(open_phones, "membership")
    with pytest.raises(RunError, match="not a run folder"):
        audit(tmp_path)
    with pytest.raises(CofactorError):
        audit(train(Pooled(), ratings()), "canaries", data=shops())


def test_budgets_of_persons_are_not_kept_by_runs() -> None:
    budget = PersonalBudget(epsilon=2.0, users=Weights.equal(0.5))
    run = train(PersonalBiases(aggregate=IdealSum()), shops(), budget=budget, capture="coordinator")
    with pytest.raises(Refused, match="budgets of their own"):
        audit(run)


def test_devices_whose_answers_are_seen_one_by_one_are_not_played_by_one() -> None:
    """The coordinator would see each of them, and the simulation only their total."""
    cohort = Federation.on_device(ratings())
    with pytest.raises(Refused, match="Make each device a party"):
        train(MultiViewMF(rounds=2, aggregate=PlainSum()), cohort, capture="coordinator")
    assert train(MultiViewMF(rounds=2), cohort, capture="coordinator").captured is not None


def test_alarm_is_for_more_than_a_promise_allows(private_shops: Run) -> None:
    whole = replace(private_shops.guarantee, why_not=(), secure_noise=True)
    strict, loose = (replace(whole, epsilon=each) for each in (0.5, 3.5))
    assert strict.holds
    assert _judged(0.9, 0.3, 100, strict) == "alarm"
    assert _judged(0.98, 0.3, 100, loose) == "succeeded"
    assert _judged(0.9, 0.3, 100, Guarantee.nothing("Nothing was promised.")) == "succeeded"
    assert _judged(0.42, 0.3, 100, strict) == "resisted"
    assert _judged(0.34, 0.3, 10_000, strict) == "resisted"


def test_what_is_not_finite_is_none_in_files(private_shops: Run, tmp_path: Path) -> None:
    folder = private_shops.save(tmp_path / "run")
    found = Audit(
        attack="canaries", seen_by="public", verdict="consistent", headline="-", figures={"mu": float("inf")}
    )
    assert json.loads(found.save(folder).read_text())["figures"] == {"mu": None}


def test_refused_capture_begins_no_ledger(tmp_path: Path) -> None:
    files = [tmp_path / "bank.csv", tmp_path / "shop.csv"]
    for file in files:
        file.write_text("id,x\n" + "".join(f"{number},{number / 60}\n" for number in range(60)))
    people, question = read_people(files[0], column="x"), Question(name="x", low=0, high=1)
    records = [Records.from_csv(file, id="id", ranges={"x": (0, 1)}) for file in files]
    with pytest.raises(Refused, match="simulations only"):
        ask(people, question, epsilon=1.0, capture=Capture("coordinator"))
    with pytest.raises(Refused, match="simulations only"):
        find_clusters(records, clusters=2, budget=USER, align="ids", capture=Capture("coordinator"))
    assert sorted(tmp_path.iterdir()) == files


def test_figures_are_written_for_people() -> None:
    assert [told(each) for each in (None, 0.123456, 12345, "sums only")] == [
        "none", "0.1235", "12,345", "sums only",
    ]  # fmt: skip
