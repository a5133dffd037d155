import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cofactor.data.ratings import Scale
from cofactor.errors import BudgetExceeded, ConfigError, LedgerError, Refused
from cofactor.federation.books import begin_ledger
from cofactor.federation.federation import Federation
from cofactor.federation.party import Party
from cofactor.federation.run import Run
from cofactor.federation.verify import verify
from cofactor.privacy.budget import Budget
from cofactor.privacy.ledger import Ledger
from cofactor.privacy.personal import PersonalBudget
from cofactor.privacy.weights import Weights
from cofactor.recipes.alone import Alone
from cofactor.recipes.horizontal import HorizontalMF
from cofactor.recipes.on_device import OnDeviceMF
from cofactor.recipes.shared_biases import SharedBiases
from cofactor.recipes.sums import IdealSum
from cofactor.recipes.surveys import left_by
from cofactor.recipes.train import train
from cofactor.recipes.vertical import VerticalMF
from cofactor.survey.asking import ask
from cofactor.survey.before_training import choose_cap, rating_histogram
from cofactor.survey.people import activity_of
from cofactor.survey.question import Question
from cofactor.survey.result import Survey
from tests.survey.making import ages, ratings_of, shops

BUDGET = Budget(epsilon=2.0, delta=1e-6, unit="user")
RECIPE = HorizontalMF(factors=2, rounds=2, local_steps=1, centre=3.5)


def activity(federation: Federation, epsilon: float = 0.5, **settings: Any) -> Survey:
    question = Question(name="ratings of a user", low=1, high=40, whole=True)
    return ask(activity_of(federation), question, epsilon=epsilon, **settings)


@pytest.fixture
def federation() -> Federation:
    return shops()


def whats(ledger: Ledger) -> list[str]:
    return [entry.event.what for entry in ledger.entries if entry.event is not None]


def test_a_cap_and_a_centre_from_surveys_count_in_the_training(
    federation: Federation, tmp_path: Path
) -> None:
    cap, histogram = choose_cap(federation, 0.3), rating_histogram(federation, 0.2)
    recipe = replace(RECIPE, most_ratings=cap.most_ratings, centre=histogram.mean)
    run = train(recipe, federation, budget=BUDGET, surveys=[cap.survey, histogram])
    assert 0.98 * 2.0 < run.guarantee.epsilon <= 2.0  # type: ignore[operator]
    assert run.guarantee.holds
    run.save(tmp_path / "run")
    for party in federation.parties:
        found = whats(Ledger.open(tmp_path / "run" / "ledgers" / f"{party.name}.ledger"))
        assert found[:2] == ["ratings of a user, round 1", "a rating of each user, round 1"]
        assert len(found) > 2
    assert verify(tmp_path / "run").holds, verify(tmp_path / "run")
    assert dict(Run.load(tmp_path / "run").together.surveys) == {  # type: ignore[union-attr]
        cap.survey.session: "ratings of a user",
        histogram.session: "a rating of each user",
    }


def test_noise_is_made_for_what_surveys_leave_and_not_for_less(federation: Federation) -> None:
    survey = activity(federation, 1.0)
    plain = train(RECIPE, federation, budget=BUDGET)
    less = train(RECIPE, federation, budget=BUDGET, surveys=[survey])

    def noise(run: Run) -> float:
        assert run.together is not None
        lines = run.together.ledgers["north"].decode().splitlines()
        events = [json.loads(line).get("event") for line in lines]
        found = [event["mechanism"].get("noise_multiplier", 0.0) for event in events if event]
        return float(max(found))

    assert noise(less) > 1.2 * noise(plain)
    # Composed by the accountant, the two cost less than simply added: epsilon 1 and 1.
    halved = train(RECIPE, federation, budget=replace(BUDGET, epsilon=1.0))
    assert noise(less) < noise(halved)


def test_a_folder_that_leaves_a_survey_out_is_found_out(federation: Federation, tmp_path: Path) -> None:
    run = train(RECIPE, federation, budget=BUDGET, surveys=[activity(federation)])
    run.save(tmp_path / "run")
    file = tmp_path / "run" / "run.json"
    facts = json.loads(file.read_text())
    facts["together"]["surveys"] = {}
    file.write_text(json.dumps(facts))
    failed = {check.name for check in verify(tmp_path / "run").checks if not check.holds}
    assert {"guarantee", "files"} <= failed


def test_a_ledger_under_another_name_is_charged_all_the_same(tmp_path: Path) -> None:
    on_disk = shops(tmp_path)
    for party in on_disk.parties:
        assert party.ledger_path is not None
        begin_ledger(party, BUDGET, party.ledger_path)
    names = [replace(party, name=f"shop {party.name}") for party in on_disk.parties]
    federation = Federation.horizontal(names, scale=Scale(1, 5))
    without_files = [replace(party, file=None, fingerprint="") for party in names]
    survey = activity(Federation.horizontal(without_files, scale=Scale(1, 5)), 1.5)
    run = train(RECIPE, federation, budget=BUDGET, surveys=[survey])
    assert run.guarantee.epsilon is not None
    assert 1.9 < run.guarantee.epsilon <= 2.0
    for party in federation.parties:
        assert party.ledger_path is not None
        ledger = Ledger.open(party.ledger_path)
        assert "ratings of a user, round 1" in whats(ledger)
        assert 1.9 < ledger.spent().epsilon <= 2.0


def test_a_ledger_that_knows_other_answers_of_a_survey_is_refused(tmp_path: Path) -> None:
    federation = shops(tmp_path)
    survey = activity(federation, 0.5, budget=BUDGET)
    cheap: Any = replace(survey.method, epsilon=0.1)  # type: ignore[type-var]
    events = tuple(replace(event, mechanism=cheap.mechanism) for event in survey.events)
    forged = replace(survey, events=events, method=cheap)
    with pytest.raises(LedgerError, match="other answers"):
        train(RECIPE, federation, budget=BUDGET, surveys=[forged])


def test_the_loss_of_a_party_with_all_others_against_it_counts_its_answers(
    federation: Federation, tmp_path: Path
) -> None:
    run = train(RECIPE, federation, budget=BUDGET, surveys=[activity(federation, 1.0)])
    run.save(tmp_path / "run")
    file = tmp_path / "run" / "run.json"
    facts = json.loads(file.read_text())
    assert facts["together"]["parties"]["north"]["epsilon"] > 1.9
    facts["together"]["parties"]["north"]["epsilon"] = 1.3  # what the training alone would cost
    file.write_text(json.dumps(facts))
    assert "releases" in {check.name for check in verify(tmp_path / "run").checks if not check.holds}


def test_a_survey_named_twice_is_refused(federation: Federation) -> None:
    survey = activity(federation)
    with pytest.raises(ConfigError, match="named twice"):
        train(RECIPE, federation, budget=BUDGET, surveys=[survey, survey])


def test_ledgers_beside_files_are_not_charged_twice(tmp_path: Path) -> None:
    federation = shops(tmp_path)
    survey = activity(federation, budget=BUDGET)
    train(RECIPE, federation, budget=BUDGET, surveys=[survey])
    for party in federation.parties:
        assert party.ledger_path is not None
        ledger = Ledger.open(party.ledger_path)
        assert whats(ledger).count("ratings of a user, round 1") == 1
        assert ledger.spent().epsilon <= 2.0
    with pytest.raises(BudgetExceeded):
        train(RECIPE, federation, budget=BUDGET)


def test_without_being_told_of_a_survey_the_training_finds_no_room_beside_a_file(tmp_path: Path) -> None:
    federation = shops(tmp_path)
    activity(federation, budget=BUDGET)
    with pytest.raises(BudgetExceeded):
        train(RECIPE, federation, budget=BUDGET)


def test_a_training_goes_on_with_the_same_surveys_only(federation: Federation, tmp_path: Path) -> None:
    survey = activity(federation)
    first = train(RECIPE, federation, budget=BUDGET, surveys=[survey], folder=tmp_path / "work")
    again = train(RECIPE, federation, budget=BUDGET, surveys=[survey], folder=tmp_path / "work")
    assert first.together is not None
    assert again.together is not None
    assert again.together.ledgers == first.together.ledgers
    with pytest.raises(Exception, match=r"differs in .*surveys"):
        train(RECIPE, federation, budget=BUDGET, folder=tmp_path / "work")


def test_devices_count_their_own_answer() -> None:
    devices = Federation.on_device(ratings_of(200), scale=Scale(1, 5))
    recipe = OnDeviceMF(factors=2, rounds=1, aggregate=IdealSum())
    run = train(recipe, devices, budget=BUDGET, surveys=[activity(devices)])
    assert run.guarantee.epsilon is not None
    assert run.guarantee.epsilon <= 2.0
    assert "ratings of a user, round 1" in run.together.ledgers["devices"].decode()  # type: ignore[union-attr]


def test_insecure_answers_break_the_promise_of_the_training(federation: Federation) -> None:
    from cofactor.randomness import InsecureRandom

    survey = activity(federation, random=InsecureRandom(3))
    assert not train(RECIPE, federation, budget=BUDGET, surveys=[survey]).guarantee.holds


def test_surveys_that_would_not_be_counted_right_are_refused(federation: Federation) -> None:
    survey = activity(federation)
    others = Federation.horizontal(
        [replace(federation.parties[0], name="east"), federation.parties[1]], scale=Scale(1, 5)
    )
    vertical = Federation.vertical(
        [Party(name=name, ratings=ratings_of(50)) for name in ("north", "south")], scale=Scale(1, 5)
    )
    personal = PersonalBudget(epsilon=2.0, delta=1e-6, unit="user", adjacency="empty", users=Weights.equal())
    one = Federation.horizontal(federation.parties[:1], scale=Scale(1, 5))
    cases: list[tuple[Any, Any, Any, str]] = [
        (RECIPE, federation, None, "count against a budget"),
        (Alone(), federation, BUDGET, "count against a budget"),
        (RECIPE, others, BUDGET, "no party of this federation"),
        (VerticalMF(), vertical, BUDGET, "every user is at one party"),
        (SharedBiases(), one, personal, "not personal"),
    ]
    for recipe, data, budget, match in cases:
        with pytest.raises((ConfigError, Refused), match=match):
            train(recipe, data, budget=budget, surveys=[survey if data is not one else activity(one)])
    with pytest.raises(ConfigError, match="list of Survey"):
        train(RECIPE, federation, budget=BUDGET, surveys=survey)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="list of Survey"):
        train(RECIPE, federation, budget=BUDGET, surveys=[ages(3)])  # type: ignore[list-item]


def test_surveys_that_take_nearly_all_of_the_budget_are_refused_with_the_reason(
    federation: Federation,
) -> None:
    with pytest.raises(Refused, match="released before takes nearly all"):
        train(RECIPE, federation, budget=BUDGET, surveys=[activity(federation, 1.99)])


def test_settings_are_chosen_for_what_is_left(federation: Federation) -> None:
    surveys = [activity(federation, 0.5), activity(federation, 0.25)]
    assert left_by(surveys, BUDGET) == replace(BUDGET, epsilon=1.25)
    assert left_by([], BUDGET) == BUDGET
    assert left_by(surveys, None) is None
