from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from cofactor.attacks.cluster_canaries import ClusterTarget, nobody
from cofactor.attacks.cluster_canaries_centres import Shadow, shadowed
from cofactor.attacks.cluster_canaries_counts import Known, _chances, counts_evidence
from cofactor.cluster.lloyd import PrivateLloyd
from cofactor.cluster.local import LSHForest, as_published
from cofactor.cluster.method import NOWHERE, Facts, LocalClustering, Membership
from cofactor.cluster.simple import IndependentCounts, LocalMemberships
from cofactor.cluster.sketch_halves import SKETCHES
from cofactor.cluster.sketches import Sketches
from cofactor.cluster.sketching import registers
from cofactor.cluster.tables import SecureTable
from cofactor.errors import ConfigError
from cofactor.federation.view import Seen
from cofactor.privacy import answer_noise, bounding
from cofactor.privacy.budget import Budget
from cofactor.privacy.laws import PolyaLaw
from cofactor.privacy.one_run import OneRun, judged
from cofactor.privacy.schedule import Release, Schedule
from cofactor.privacy.sketches import PartitionSketch
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
    usual = {"canaries": 24, "local_clusters": 8, "clusters": 3, "shadows": 0, "local": QUICK}
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
    settings = {"records": nobody(widths=(2, 2)), "shadows": 8, "method": IndependentCounts()}
    found, _ = audited(target(1.0, local=LOCALS[name], **settings))
    assert not found.refuted


@pytest.mark.parametrize("name", LOCALS)
def test_centres_tell_who_is_there_where_there_is_hardly_any_noise(name: str) -> None:
    local, width, count = LOCALS[name], 2, 8
    releases = local.releases(width=width, clusters=8, users=count, epsilon=50.0, by="party")
    party = Shadow(
        local=local,
        schedule=Schedule(releases=releases, rounds=1),
        canaries=np.random.default_rng(3).uniform(-1, 1, (count, width)),
        others=np.empty((0, width)),
        clusters=8,
        users=count,
        seed=1,
    )
    known = shadowed(party, 30, InsecureRandom(1), 1)
    coins = np.random.default_rng(4).random((12, count)) < 0.5
    noise = InsecureRandom(2)
    scores = np.stack([known.evidence(party.centres(each, noise)) for each in coins])
    above = scores[coins][:, None] > scores[~coins]
    assert above.mean() > 0.7


def test_answers_at_three_times_the_epsilon_trip_the_audit(monkeypatch: pytest.MonkeyPatch) -> None:
    own = target(2.0, method=LocalMemberships(share=0.95), canaries=600, local_clusters=5)
    assert not audited(own)[0].refuted
    true = answer_noise.randomized_response

    def loud(values: Any, choices: int, epsilon: float, random: Random) -> Any:
        return true(values, choices, 3 * epsilon, random)

    monkeypatch.setattr(answer_noise, "randomized_response", loud)
    assert audited(own)[0].refuted


def test_other_users_are_known_and_do_not_hide_a_canary() -> None:
    first, second = nobody()
    values = np.random.default_rng(5).uniform(-1, 1, (2, 210, 1))
    values[0, :20] = np.nan  # of some users nothing is known, and the second party has others besides
    names = tuple(f"user {number}" for number in range(210))
    crowd = (
        replace(first, ids=names[:200], values=values[0, :200]),
        replace(second, ids=names, values=values[1]),
    )
    found, above = audited(target(32.0, records=crowd, method=MEMBERSHIPS["sizes"]))
    assert not found.refuted
    assert above > 0.6


def test_a_clustering_without_anybody_is_audited_and_charges_no_ledger(tmp_path: Path) -> None:
    first, second = nobody()
    file = tmp_path / "first.csv"
    file.write_text("nothing")
    own = target(4.0, records=(replace(first, file=file), second), method=MEMBERSHIPS["sizes"], shadows=8)
    played = own.play(np.zeros(24, np.bool_), InsecureRandom(1))
    assert np.isfinite(played.scores).all()
    assert [path.name for path in tmp_path.iterdir()] == ["first.csv"]
    assert played.promised is not None
    assert played.guarantee.epsilon == pytest.approx(4.0, rel=0.05)


def test_registers_of_all_pairs_are_read_from_the_right_places() -> None:
    """With hardly any phantoms, whoever is there is sure to be seen, and whoever is not as well."""
    sketch, clusters, count = PartitionSketch(rows=256, phantoms=1, low=1, high=30), 4, 8
    facts = Facts(
        parties=("a", "b", "c"), users=count, columns=(("x",),) * 3, clusters=2, local_clusters=clusters
    )
    release = Release(
        what=SKETCHES, mechanism=sketch, bound=bounding.MEMBER, dimension=2 * 256 * clusters, rounds=1
    )
    chance, random = np.random.default_rng(6), InsecureRandom(6)
    cells = chance.integers(clusters, size=(3, count))
    present = np.arange(count) % 2 == 0
    there, names = np.where(present, cells, NOWHERE), [f"user {number}" for number in range(count)]
    sent: dict[int, list[Any]] = {0: [], 1: [], 2: []}
    for number, pair in enumerate(facts.pairs):
        for place in pair:
            own = registers(bytes([number]) * 32, names, there[place], clusters, sketch.rows)
            sent[place].append(sketch.noisy(bounding.registers(own), random))
    seen = [
        Seen(
            round=3,
            sender=party,
            receiver="coordinator",
            kind="SketchRegisters",
            protection="",
            arrays={"registers": np.stack(sent[place])},
        )
        for place, party in enumerate(facts.parties)
    ]
    plan: Any = SimpleNamespace(facts=facts, whole=Schedule(releases=(release,), rounds=1))
    known = Known(
        plan=plan, rows=np.arange(count), canaries=tuple(cells), others=(np.empty(0, np.int64),) * 3
    )
    view: Any = SimpleNamespace(messages=lambda kind, **_: iter([each for each in seen if each.kind == kind]))
    np.testing.assert_array_equal(counts_evidence(view, known) > 0, present)


@pytest.mark.parametrize("parties", [1, 2])
def test_noise_of_counts_has_the_law_that_is_judged_by(parties: int) -> None:
    law = PolyaLaw(scale=1.5, shape=Fraction(parties))
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
    own = target(epsilon, method=MEMBERSHIPS[name], canaries=40)
    if name == "answers":
        own = replace(own, canaries=1000, local_clusters=4)
    found, _ = audited(own, plays=max(400 // own.canaries, 1))
    assert not found.refuted


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [1.0, 4.0])
@pytest.mark.parametrize("name", LOCALS)
def test_many_canaries_do_not_refute_any_local_clustering(name: str, epsilon: float) -> None:
    few = {"records": nobody(widths=(2, 2)), "canaries": 8, "shadows": 40, "method": IndependentCounts()}
    found, _ = audited(target(epsilon, local=LOCALS[name], **few), plays=20)
    assert not found.refuted
