from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from cofactor.attacks.cluster_canaries import ClusterTarget, nobody
from cofactor.attacks.cluster_canaries_centres import Rehearsal, rehearsed
from cofactor.attacks.cluster_canaries_counts import _chances
from cofactor.cluster.lloyd import PrivateLloyd
from cofactor.cluster.local import LSHForest, as_published
from cofactor.cluster.method import LocalClustering, Membership
from cofactor.cluster.simple import IndependentCounts, LocalMemberships
from cofactor.cluster.sketches import Sketches
from cofactor.cluster.tables import SecureTable
from cofactor.errors import ConfigError
from cofactor.privacy import answer_noise
from cofactor.privacy.budget import Budget
from cofactor.privacy.laws import PolyaLaw
from cofactor.privacy.one_run import OneRun, judged
from cofactor.privacy.schedule import Schedule
from cofactor.randomness import InsecureRandom, Random

CONFIDENCE = 0.999
MEMBERSHIPS: dict[str, Membership] = {
    "tables": SecureTable(bits=2048),
    "sketches": Sketches(rows=1024, share=0.8),
    "sizes": IndependentCounts(share=0.5),
    "answers": LocalMemberships(),
}
LOCALS: dict[str, LocalClustering] = {
    "forest": LSHForest(),
    "hyperplanes": as_published(),
    "Lloyd": PrivateLloyd(iterations=1),
}
QUICK = PrivateLloyd(iterations=1)
"""One release, whose cost is soon reckoned."""

pytestmark = pytest.mark.filterwarnings("ignore::cofactor.errors.PrivacyWarning")


def target(epsilon: float, **settings: Any) -> ClusterTarget:
    usual = {"canaries": 24, "local_clusters": 8, "clusters": 3, "rehearsals": 0, "local": QUICK}
    budget = Budget(epsilon=epsilon, delta=1e-6, unit="user")
    return ClusterTarget(**{"records": nobody(), "budget": budget, **usual, **settings})


def audited(own: ClusterTarget, plays: int = 1) -> tuple[OneRun, float]:
    """Return what guesses proved, and how often somebody present has a larger score than somebody absent."""
    chance, scores, coins = np.random.default_rng(1), [], []
    for seed in range(plays):
        present = chance.random(own.canaries) < 0.5
        played = own.play(present, InsecureRandom(seed))
        scores.append(played.scores)
        coins.append(present)
    found, truth = np.concatenate(scores), np.concatenate(coins)
    above = found[truth][:, None] > found[~truth]
    return judged(found, truth, played.promised, confidence=CONFIDENCE), float(above.mean())


@pytest.mark.parametrize("name", MEMBERSHIPS)
def test_every_way_to_count_keeps_its_promise_and_tells_all_where_it_is_large(name: str) -> None:
    found, above = audited(target(32.0, method=MEMBERSHIPS[name]))
    assert not found.refuted
    assert above > 0.6


@pytest.mark.parametrize("name", LOCALS)
def test_every_local_clustering_keeps_its_promise(name: str) -> None:
    settings = {"records": nobody(widths=(2, 2)), "rehearsals": 8, "method": IndependentCounts()}
    found, _ = audited(target(1.0, local=LOCALS[name], **settings))
    assert not found.refuted


@pytest.mark.parametrize("name", LOCALS)
def test_centres_tell_who_is_there_where_there_is_hardly_any_noise(name: str) -> None:
    local, width, count = LOCALS[name], 2, 8
    releases = local.releases(width=width, clusters=8, users=count, epsilon=50.0, by="party")
    party = Rehearsal(
        local=local,
        schedule=Schedule(releases=releases, rounds=1),
        canaries=np.random.default_rng(3).uniform(-1, 1, (count, width)),
        others=np.empty((0, width)),
        clusters=8,
        users=count,
        seed=1,
    )
    known = rehearsed(party, 30, InsecureRandom(1), 1)
    coins = np.random.default_rng(4).random((12, count)) < 0.5
    scores = np.stack(
        [known.evidence(party.centres(each, InsecureRandom(9 + i))) for i, each in enumerate(coins)]
    )
    above = scores[coins][:, None] > scores[~coins]
    assert above.mean() > 0.7


def test_answers_at_three_times_the_epsilon_trip_the_audit(monkeypatch: pytest.MonkeyPatch) -> None:
    own = target(2.0, method=LocalMemberships(share=0.95), canaries=800, local_clusters=5)
    assert not audited(own)[0].refuted
    true = answer_noise.randomized_response

    def loud(values: Any, choices: int, epsilon: float, random: Random) -> Any:
        return true(values, choices, 3 * epsilon, random)

    monkeypatch.setattr(answer_noise, "randomized_response", loud)
    assert audited(own)[0].refuted


def test_other_users_are_known_and_do_not_hide_a_canary() -> None:
    chance = np.random.default_rng(5)
    crowd = [
        replace(each, ids=tuple(range(200)), values=chance.uniform(-1, 1, (200, 1))) for each in nobody()
    ]
    # Of some users nothing is known, and one party has others besides.
    crowd[0].values.flags.writeable = True
    crowd[0].values[:20] = np.nan
    crowd[1] = replace(
        crowd[1], ids=tuple(range(210)), values=np.concatenate([crowd[1].values, np.zeros((10, 1))])
    )
    own = target(32.0, records=tuple(crowd), method=IndependentCounts(share=0.9))
    found, above = audited(own)
    assert not found.refuted
    assert above > 0.6


def test_a_clustering_that_is_audited_charges_no_ledger(tmp_path: Any) -> None:
    first, second = nobody()
    file = tmp_path / "first.csv"
    file.write_text("nothing")
    own = target(4.0, records=(replace(first, file=file), second), method=IndependentCounts())
    played = own.play(np.ones(24, np.bool_), InsecureRandom(1))
    assert [path.name for path in tmp_path.iterdir()] == ["first.csv"]
    assert played.promised is not None
    assert played.guarantee.epsilon == pytest.approx(4.0, rel=0.05)


def test_nobody_at_all_can_be_there() -> None:
    own = target(4.0, method=IndependentCounts(), rehearsals=8)
    assert np.isfinite(own.play(np.zeros(24, np.bool_), InsecureRandom(1)).scores).all()


@pytest.mark.parametrize("shape", [1, 2])
def test_noise_of_counts_has_the_law_that_is_judged_by(shape: int) -> None:
    law = (
        PolyaLaw(scale=1.5).part(shape)
        if shape == 1
        else PolyaLaw(scale=1.5, shape=PolyaLaw(scale=1.5).shape * 2)
    )
    chances, reach = _chances(law)
    assert chances.sum() == pytest.approx(1.0)
    drawn = law.drawn((100_000,), InsecureRandom(2))
    seen = np.bincount(drawn + reach, minlength=len(chances)) / len(drawn)
    assert np.abs(seen - chances).max() < 6 * np.sqrt(0.25 / len(drawn))


def test_settings_that_make_no_sense_are_refused() -> None:
    with pytest.raises(ConfigError, match="what the coordinator sees"):
        target(1.0, seen_by="public")
    with pytest.raises(ConfigError, match="two parties or more"):
        target(1.0, records=nobody(widths=(1,)))
    assert target(1.0).name == "a clustering by SecureTable and PrivateLloyd"


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [1.0, 4.0])
@pytest.mark.parametrize("name", MEMBERSHIPS)
def test_many_canaries_do_not_refute_any_way_to_count(name: str, epsilon: float) -> None:
    many = {"canaries": 1000, "local_clusters": 4} if name == "answers" else {"canaries": 40}
    found, _ = audited(
        target(epsilon, method=MEMBERSHIPS[name], **many), plays=2 if name == "answers" else 25
    )
    assert not found.refuted


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [1.0, 4.0])
@pytest.mark.parametrize("name", LOCALS)
def test_many_canaries_do_not_refute_any_local_clustering(name: str, epsilon: float) -> None:
    few = {"records": nobody(widths=(2, 2)), "canaries": 8, "rehearsals": 40, "method": IndependentCounts()}
    found, _ = audited(target(epsilon, local=LOCALS[name], **few), plays=40)
    assert not found.refuted
