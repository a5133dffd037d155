"""The kinds of work by name: which half goes with which proposal."""

from typing import TYPE_CHECKING

from cofactor.network.proposal import Proposal
from cofactor.network.work import AtCoordinator, AtParty, Search, Sitting

if TYPE_CHECKING:
    from cofactor.network.site import Site


def at_party(sitting: Sitting, site: "Site") -> AtParty:
    """Return the work where the data are; it reads the party's file as the party's own settings say."""
    if sitting.proposal.kind == "survey":
        from cofactor.network.survey_party import SurveyAtParty

        return SurveyAtParty(sitting, site.people)
    if sitting.proposal.kind == "clustering":
        from cofactor.network.cluster_party import ClusteringAtParty

        return ClusteringAtParty(sitting, site.records)
    from cofactor.network.training_party import TrainingAtParty

    return TrainingAtParty(sitting, lambda work: site.party(work.stated_scale, work.attributes))


def at_coordinator(proposal: Proposal) -> AtCoordinator:
    """Return the work where nobody's data are."""
    if proposal.kind == "survey":
        from cofactor.network.survey_coordinator import SurveyAtCoordinator

        return SurveyAtCoordinator(proposal)
    if proposal.kind == "clustering":
        from cofactor.network.cluster_coordinator import ClusteringAtCoordinator

        return ClusteringAtCoordinator(proposal)
    from cofactor.network.training_coordinator import TrainingAtCoordinator

    return TrainingAtCoordinator(proposal)


def search_of(proposal: Proposal) -> Search | None:
    """Return how users in common are found, by the proposal."""
    return at_coordinator(proposal).search
