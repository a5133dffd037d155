"""All kinds of work between real processes: `make test-net-full` runs it."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.real_parties import POLICY_TEXT, RealParties
from cofactor.cluster.result import Clustering
from cofactor.cluster.tables import SecureTable
from cofactor.crypto.lattice import Lattice
from cofactor.federation.federation import Federation
from cofactor.federation.party import Party
from cofactor.federation.transcript import Transcript
from cofactor.federation.verify import verify
from cofactor.network.cluster_terms import ClusteringWork
from cofactor.network.processes import Client
from cofactor.network.site import POLICY
from cofactor.network.sources import PeopleSource, RecordsSource
from cofactor.network.survey_terms import SurveyWork
from cofactor.privacy.budget import Budget
from cofactor.privacy.ledger import Ledger
from cofactor.recipes.horizontal import HorizontalMF
from cofactor.recipes.opened_sums import EncryptedSum, SharedSum
from cofactor.recipes.sums import SecureSum
from cofactor.recipes.train import train
from cofactor.recipes.vertical import VerticalMF
from cofactor.survey.result import Survey
from cofactor.survey.waves import SquareWave
from tests.cluster.making import mixture
from tests.network.making import NAMES, training
from tests.network.proxy import Proxy
from tests.network.real import (
    BUDGET,
    Files,
    begun,
    between,
    bring,
    check_as_in_one_process,
    check_books,
    finished,
    written,
)
from tests.network.relay import Relay
from tests.survey.making import AGE, ages

pytestmark = pytest.mark.net

SECURE = HorizontalMF(factors=3, rounds=3, local_steps=1, aggregate=SecureSum(dropout=0.0))


@pytest.fixture
def files(tmp_path: Path) -> Files:
    """New ones for each test, with all of their budget."""
    return written(tmp_path)


@pytest.fixture(scope="module")
def parties(tmp_path_factory: pytest.TempPathFactory) -> RealParties:
    return RealParties(tmp_path_factory.mktemp("federation"), dict.fromkeys(NAMES, ()))


@pytest.fixture(scope="module")
def relay(parties: RealParties) -> Iterator[Relay]:
    with between(parties) as found:
        yield found


@pytest.fixture(scope="module")
def federation(parties: RealParties, relay: Relay) -> Iterator[RealParties]:
    with parties:
        yield parties


def test_bytes_on_the_sockets_grow_as_those_of_the_transcript(
    federation: RealParties, relay: Relay, files: Files
) -> None:
    bring(federation, files["-wide"])
    found = []
    for factors in (1, 20):
        recipe = replace(SECURE, factors=factors)
        hosted, before = begun(federation, training(recipe, budget=BUDGET)), relay.bytes
        finished(federation, hosted)
        found.append((Transcript.open(hosted.folder / "transcript.jsonl").total_bytes, relay.bytes - before))
    (little, idle), (much, busy) = found
    print(f"transcripts {little:,} and {much:,} bytes, sockets {idle:,} and {busy:,}")
    # What begins a job is in both; what is left is messages, their frames, and what keeps connections of a
    # longer job alive.
    assert abs((busy - idle) - (much - little)) < 0.1 * (much - little) + 500_000


def test_parties_reach_the_server_through_a_proxy(federation: RealParties, files: Files) -> None:
    bring(federation, files[""])
    own = federation.clients["south"]
    own.stop()
    with Proxy() as proxy:
        environment = {"https_proxy": f"http://127.0.0.1:{proxy.port}"}
        with Client(federation.folder / "south", environment=environment):
            hosted = begun(federation, training(SECURE, budget=BUDGET))
            finished(federation, hosted)
        assert {target.rpartition(":")[0] for target in proxy.asked} == {"localhost"}
    own.start()


def test_party_that_refuses_the_plan_ends_it_before_anybody_tells_anything(
    federation: RealParties, files: Files
) -> None:
    bring(federation, files[""])
    policy = federation.sites["west"].folder / POLICY
    before = {name: _ledger(file) for name, file in files[""].items()}
    policy.write_text(POLICY_TEXT.replace("max_epsilon_per_run = 8.0", "max_epsilon_per_run = 1.0"))
    try:
        hosted = begun(federation, training(SECURE, budget=BUDGET))
        outcome = federation.run(hosted)
    finally:
        policy.write_text(POLICY_TEXT)
    assert outcome["outcome"] == "refused"
    assert outcome["words"].startswith("west has a policy that allows less epsilon for a run")
    assert {name: _ledger(file) for name, file in files[""].items()} == before
    assert not (hosted.folder / "agreed.json").exists()


def _ledger(file: Path) -> bytes:
    path = file.with_name(file.name + ".ledger")
    return path.read_bytes() if path.exists() else b""


@pytest.mark.parametrize("aggregate", [EncryptedSum(), SharedSum()], ids=["encrypted", "shared"])
def test_sums_that_decrypters_open_go_through(federation: RealParties, files: Files, aggregate: Any) -> None:
    bring(federation, files[""])
    hosted = begun(federation, training(replace(SECURE, aggregate=aggregate), budget=BUDGET))
    assert finished(federation, hosted).guarantee.holds
    check_books(federation, hosted, files[""])


def test_lattice_sums_without_noise_give_the_model_of_one_process(
    federation: RealParties, files: Files
) -> None:
    bring(federation, files[""])
    recipe = replace(SECURE, aggregate=EncryptedSum(scheme=Lattice()))
    hosted = begun(federation, training(recipe))
    finished(federation, hosted)
    parties = [Party.from_csv(file, name=name) for name, file in files[""].items()]
    here = train(SECURE, Federation.horizontal(parties), seed=7)
    # Numbers are rounded by chance before they are hidden.
    check_as_in_one_process(federation, hosted, here, within=1e-3)


def test_vertical_parties_find_their_users_in_common_and_train(federation: RealParties, files: Files) -> None:
    bring(federation, files["-vertical"])
    recipe = VerticalMF(factors=3, rounds=3)
    hosted = begun(federation, training(recipe, ids="psi"))
    there = finished(federation, hosted)
    assert there.together is not None
    assert there.together.alignment is not None
    parties = [Party.from_csv(file, name=name) for name, file in files["-vertical"].items()]
    here = train(recipe, Federation.vertical(parties, align="psi"), seed=7)
    assert here.together is not None
    assert here.together.alignment is not None
    assert there.together.alignment.common == here.together.alignment.common
    check_as_in_one_process(federation, hosted, here)


def test_survey_is_answered_and_charged(federation: RealParties, tmp_path: Path) -> None:
    for place, (name, site) in enumerate(federation.sites.items()):
        lines = [f"{row},{number}\n" for row, number in enumerate(ages(200, place).round(3))]
        file = tmp_path / f"{name}.csv"
        file.write_text("user,age\n" + "".join(lines))
        site.bringing(PeopleSource(file=str(file), column="age")).write()
    work = SurveyWork(question=AGE, method=SquareWave(epsilon=2.0, buckets=32)).table()
    hosted = federation.begin(federation.proposal(work, kind="survey"))
    assert federation.run(hosted)["outcome"] == "finished"
    found = Survey.load(hosted.folder / "run")
    assert found.answered == 200 * len(NAMES)
    assert found.guarantee.epsilon == pytest.approx(2.0)
    assert verify(hosted.folder / "run").holds
    for name in NAMES:
        assert Ledger.open(tmp_path / f"{name}.csv.ledger").spent().epsilon == pytest.approx(2.0)


def test_clusters_are_found_among_users_in_common(federation: RealParties, tmp_path: Path) -> None:
    points, _ = mixture(180, columns=6)
    for place, (name, site) in enumerate(federation.sites.items()):
        columns, own = (f"{name}-a", f"{name}-b"), points[5 * place :, 2 * place : 2 * place + 2]
        lines = [f"u{5 * place + row},{one:.6f},{other:.6f}\n" for row, (one, other) in enumerate(own)]
        file = tmp_path / f"{name}.csv"
        file.write_text(f"user,{columns[0]},{columns[1]}\n" + "".join(lines))
        ranges = {column: [-1.0, 1.0] for column in columns}
        site.bringing(RecordsSource(file=str(file), id="user", columns=columns, ranges=ranges)).write()
    budget = Budget(epsilon=8.0, delta=1e-6, unit="user")
    work = ClusteringWork(
        clusters=3, budget=budget, method=SecureTable(bits=2048), local_clusters=3, align="psi"
    )
    hosted = federation.begin(federation.proposal(work.table(), kind="clustering"))
    assert federation.run(hosted)["outcome"] == "finished"
    found = Clustering.load(hosted.folder / "run")
    assert found.facts.users == 170
    assert found.scaled.shape == (3, 6)
    assert np.isfinite(found.scaled).all()
    assert found.guarantee.holds
    assert verify(hosted.folder / "run").holds
