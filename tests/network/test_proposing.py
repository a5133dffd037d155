from pathlib import Path

import pytest

from cofactor.crypto.keys import Identity
from cofactor.errors import CofactorError, Refused
from cofactor.network.cluster_terms import ClusteringWork
from cofactor.network.proposal import Proposal
from cofactor.network.proposing import propose
from cofactor.network.survey_terms import SurveyWork
from cofactor.network.training_terms import TrainingWork

KEYS = {name: Identity.generate().public for name in ("north", "south", "west")}
TRAINING = """[federation]
split = "horizontal"
scale = "1:5"
items = "union"
[recipe]
kind = "HorizontalMF"
rounds = 3
[budget]
epsilon = 2
"""


def job(folder: Path, text: str) -> Path:
    path = folder / "job.toml"
    path.write_text(text)
    return path


def test_a_job_becomes_a_proposal_that_reads_back(tmp_path: Path) -> None:
    made = propose(job(tmp_path, TRAINING), KEYS)
    read = Proposal.from_json(made.as_json())
    assert read.digest == made.digest
    assert read.roster == KEYS
    work = TrainingWork.of(read.work)
    assert (work.split, work.scale, work.ids) == ("horizontal", (1.0, 5.0), "union")
    assert work.budget is not None
    assert (work.budget.epsilon, work.budget.delta, work.budget.unit) == (2.0, 1e-6, "user")
    assert getattr(work.recipe, "rounds", None) == 3


def test_each_proposal_is_a_new_session(tmp_path: Path) -> None:
    path = job(tmp_path, TRAINING)
    assert propose(path, KEYS).session != propose(path, KEYS).session


def test_parties_are_in_the_order_that_the_job_names(tmp_path: Path) -> None:
    text = TRAINING.replace("[federation]", '[federation]\nparties = ["west", "north"]')
    assert list(propose(job(tmp_path, text), KEYS).parties) == ["west", "north"]


def test_a_list_of_ids_is_a_catalogue(tmp_path: Path) -> None:
    (tmp_path / "items.txt").write_text("7\n11\n")
    text = TRAINING.replace('items = "union"', 'catalogue = "items.txt"')
    work = TrainingWork.of(propose(job(tmp_path, text), KEYS).work)
    assert work.ids == "catalogue"
    assert work.catalogue is not None
    assert work.catalogue.tolist() == [7, 11]


def test_vertical_parties_find_common_users_privately_unless_the_job_says_more(tmp_path: Path) -> None:
    text = '[federation]\nsplit = "vertical"\nscale = "1:5"\n[budget]\nepsilon = 1\n'
    work = TrainingWork.of(propose(job(tmp_path, text), KEYS).work)
    assert (work.ids, type(work.recipe).__name__) == ("psi", "VerticalTaste")


def test_a_revoked_party_is_left_out_and_refused_by_name(tmp_path: Path) -> None:
    assert list(propose(job(tmp_path, TRAINING), KEYS, revoked=("west",)).parties) == ["north", "south"]
    text = TRAINING.replace("[federation]", '[federation]\nparties = ["west", "north"]')
    with pytest.raises(Refused, match="revoked"):
        propose(job(tmp_path, text), KEYS, revoked=("west",))


def test_a_survey_is_proposed_by_its_question_and_what_an_answer_may_tell(tmp_path: Path) -> None:
    text = '[question]\nname = "age"\nlow = 0\nhigh = 120\n[method]\nepsilon = 1\n'
    made = propose(job(tmp_path, text), KEYS)
    work = SurveyWork.of(Proposal.from_json(made.as_json()).work)
    assert (made.kind, work.question.name, work.method.epsilon) == ("survey", "age", 1.0)
    named = text.replace("[method]", '[method]\nkind = "GRR"\nbuckets = 4')
    assert type(SurveyWork.of(propose(job(tmp_path, named), KEYS).work).method).__name__ == "GRR"


def test_a_clustering_is_proposed_with_a_budget(tmp_path: Path) -> None:
    text = "[clustering]\nclusters = 3\n[budget]\nepsilon = 1\ndelta = 1e-7\n"
    made = propose(job(tmp_path, text), KEYS)
    work = ClusteringWork.of(Proposal.from_json(made.as_json()).work)
    assert (made.kind, work.clusters, work.align, work.budget.delta) == ("clustering", 3, "psi", 1e-7)


MISTAKES = [
    (TRAINING.replace("[budget]\nepsilon = 2\n", ""), "has no budget"),
    (TRAINING.replace("epsilon", "epsilom"), 'Did you mean "epsilon"'),
    (TRAINING.replace("[budget]", "[budgt]"), 'has "budgt".*Did you mean "budget"'),
    (TRAINING.replace("scale =", "skale ="), 'Did you mean "scale"'),
    (TRAINING.replace('scale = "1:5"\n', ""), "needs the scale"),
    (TRAINING.replace('"1:5"', '"1-5"'), "must look like 1:5"),
    (TRAINING.replace('items = "union"\n', ""), "must say which items"),
    (TRAINING.replace('split = "horizontal"\n', ""), "needs split"),
    (TRAINING.replace('"horizontal"', '"sideways"'), "split must be one of"),
    (TRAINING.replace("HorizontalMF", "HorizontalMV"), 'Did you mean "HorizontalMF"'),
    (TRAINING.replace("[federation]", '[federation]\nparties = ["nord"]'), 'Did you mean "north"'),
    (TRAINING.replace("[federation]", '[federation]\nparties = ["north"]'), "two parties or more"),
    (TRAINING.replace("[federation]", '[federation]\nparties = ["north", "north"]'), "twice"),
    (TRAINING.replace('items = "union"', 'align = "psi"'), 'align goes with split = "vertical"'),
    (TRAINING.replace("kind", "aggregate = {kind = 'IdealSum'}\nkind"), "IdealSum is for simulations"),
    ("not_private = true\n" + TRAINING, "Leave out"),
    ("seed = -1\n" + TRAINING, "seed must be"),
    ("budget = 3\n", "must be a table|needs split"),
    ('[question]\nname = "age"\nlow = 0\nhigh = 120\n', "what an answer may tell"),
    ("[clustering]\nclusters = 3\n", "has no budget"),
    ("[clustering]\ncluster = 3\n[budget]\nepsilon = 1\n", 'Did you mean "clusters"'),
]


@pytest.mark.parametrize(("text", "words"), MISTAKES)
def test_a_mistake_in_a_job_is_told_with_what_to_do(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(CofactorError, match=words):
        propose(job(tmp_path, text), KEYS)
