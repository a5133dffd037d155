"""What section 5.5 of the thesis says of its figures, as comparisons that rows can confirm or not.

The text gives words, not numbers. Where a word needs a number, it is ours, and stands in brackets.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

from cofactor.papers.dpmf_rp_findings import Panel, panels
from cofactor.papers.results import Row
from cofactor.papers.thesis22_claims import Claim, Point, told
from cofactor.papers.thesis22_cluster_names import (
    BASIC,
    CENTRAL,
    CENTRAL_PRIVATE,
    INDEPENDENT,
    LOCAL_ANSWERS,
    NO_PRIVACY,
    PRIVATE_CENTRES,
    PRIVATE_TABLE,
    TWO_PARTY,
    four_parties,
    on_letter,
    two_parties,
)

ALIKE = 0.1
"""What "close", "similar", "not much" and "barely" are taken to mean: up to a tenth more."""
_BASELINES = (INDEPENDENT, LOCAL_ANSWERS)


class Said(NamedTuple):
    """Something that is said of all panels of a figure, or of some, taken together."""

    claim: Claim
    about: Callable[[str], bool] = lambda _: True
    name: str = "all sets"

    def found(self, rows: Sequence[Row]) -> list[str]:
        """Say whether we find it; nothing, where it was not measured."""
        own = [panel for panel in panels(rows) if self.about(panel.name)]
        return pooled(
            self.name, self.claim.says, [self._points(panel) for panel in own], most=self.claim.most
        )

    def _points(self, panel: Panel) -> list[Point]:
        points = self.claim.points(panel)
        return [replace(point, place=f"{panel.name}, {point.place}") for point in points]


def pooled(name: str, says: str, points: Sequence[Sequence[Point]], *, most: bool = False) -> list[str]:
    """Say whether points of several panels confirm what is said; nothing, if there are none."""
    flat = [point for some in points for point in some]
    return [told(name, says, flat, most=most)] if flat else []


def _first(columns: Sequence[str]) -> Sequence[str]:
    return [column for column in columns if column.startswith("epsilon")][:1]


def _last(columns: Sequence[str]) -> Sequence[str]:
    return [column for column in columns if column.startswith("epsilon")][-1:]


FIGURE_2 = (
    Said(
        Claim(
            says="vertical k-means without privacy has higher losses than central k-means in most cases",
            lines=(CENTRAL,),
            than=(NO_PRIVACY,),
            most=True,
        )
    ),
    Said(
        Claim(
            says="DPFMPS-2PEst has lower losses than IND-LAP and LDP-AGG-2PEst in most settings",
            lines=(TWO_PARTY,),
            than=_BASELINES,
            most=True,
        )
    ),
    Said(
        Claim(
            says="DPFMPS-BasicEst and DPFMPS-2PEst are the same with two parties (here: none is seen to be "
            "higher)",
            lines=(TWO_PARTY,),
            than=(BASIC,),
            no_higher=True,
        ),
        two_parties,
        "S = 2",
    ),
    Said(
        Claim(
            says="DPFMPS-2PEst largely improves over DPFMPS-BasicEst with four parties (here: is lower)",
            lines=(TWO_PARTY,),
            than=(BASIC,),
        ),
        four_parties,
        "S = 4",
    ),
    Said(
        Claim(
            says="on Letter IND-LAP is slightly better where epsilon is small",
            lines=(INDEPENDENT,),
            than=(TWO_PARTY,),
            columns=_first,
        ),
        on_letter,
        "letter",
    ),
    Said(
        Claim(
            says="LDP-AGG-2PEst is inferior to DPFMPS-2PEst where epsilon is small",
            lines=(TWO_PARTY,),
            than=(LOCAL_ANSWERS,),
            columns=_first,
        )
    ),
    Said(
        Claim(
            says=f"LDP-AGG-2PEst is close to DPFMPS-2PEst where epsilon is large (here: at most {ALIKE:.0%} "
            "above)",
            lines=(LOCAL_ANSWERS,),
            than=(TWO_PARTY,),
            times=1 / (1 + ALIKE),
            columns=_last,
        )
    ),
    Said(
        Claim(
            says="private vertical k-means almost always has a higher loss than central DPLSF",
            lines=(CENTRAL_PRIVATE,),
            than=(TWO_PARTY, BASIC, *_BASELINES),
            most=True,
        )
    ),
)
FINER_GRID = "without privacy, a finer grid, of four parties instead of two, lowers the loss"

# A claim says that lines are lower than others: a V-measure is the better, the higher it is.
FIGURE_3 = (
    Said(
        Claim(
            says="DPFMPS-2PEst outperforms IND-LAP and LDP-AGG-2PEst in most settings",
            lines=_BASELINES,
            than=(TWO_PARTY,),
            most=True,
        )
    ),
    Said(
        Claim(
            says="on Letter, too, DPFMPS-2PEst outperforms the others with most budgets",
            lines=_BASELINES,
            than=(TWO_PARTY,),
            most=True,
        ),
        lambda name: on_letter(name) and four_parties(name),
        "letter, S = 4",
    ),
    Said(
        Claim(
            says=f"on Letter, DPFMPS-2PEst is close to the best (here: at most {ALIKE:.0%} below)",
            lines=_BASELINES,
            than=(TWO_PARTY,),
            times=1 - ALIKE,
        ),
        lambda name: on_letter(name) and two_parties(name),
        "letter, S = 2",
    ),
)
LOWER_ON_LETTER = "scores of all three methods are lower on Letter than on the other real sets"

FIGURE_4 = (
    Said(
        Claim(
            says="DPFMPS-2PEst has lower losses than IND-LAP and LDP-AGG-2PEst",
            lines=(TWO_PARTY,),
            than=_BASELINES,
        )
    ),
)
SAME_BY_SPLIT = f"losses of DPFMPS-2PEst change little with the split (here: by {ALIKE:.0%} at most)"

FIGURE_5 = (
    Said(
        Claim(
            says="DPFMPS-2PEst always has the lowest loss of the three",
            lines=(TWO_PARTY,),
            than=_BASELINES,
        )
    ),
)
GROWS_WITH_PARTIES = "losses generally increase with the number of parties"

FIGURE_6 = (
    Said(
        Claim(
            says="DPFMPS-2PEst outperforms the other methods in most settings",
            lines=(TWO_PARTY,),
            than=_BASELINES,
            most=True,
        )
    ),
    Said(
        Claim(
            says="DPFMPS-BasicEst is similar to DPFMPS-2PEst with two parties (here: neither is seen to be "
            "higher)",
            lines=(TWO_PARTY,),
            than=(BASIC,),
            no_higher=True,
        ),
        two_parties,
        "S = 2",
    ),
    Said(
        Claim(
            says="DPFMPS-2PEst is significantly more accurate than DPFMPS-BasicEst with four parties",
            lines=(TWO_PARTY,),
            than=(BASIC,),
        ),
        four_parties,
        "S = 4",
    ),
    Said(
        Claim(
            says="errors of LDP-AGG-2PEst are larger than those of DPFMPS-2PEst",
            lines=(TWO_PARTY,),
            than=(LOCAL_ANSWERS,),
        )
    ),
)
BARELY_FALLS = f"errors of IND-LAP barely fall as epsilon grows (here: by {ALIKE:.0%} at most)"

FIGURE_7 = (
    Said(
        Claim(
            says="with two parties private centres cost more than a private table: with them alone, the loss "
            "is closer to that of all in private",
            lines=(PRIVATE_TABLE,),
            than=(PRIVATE_CENTRES,),
        ),
        two_parties,
        "S = 2",
    ),
)
SIMILAR_EFFECT = (
    "with four parties private centres and a private table have a similar effect on the loss "
    f"(here: they differ by {ALIKE:.0%} at most)"
)
TABLE_COSTS_MORE = "a private table costs more with more parties"

LARGER_HELPS = "where epsilon is large, more local clusters than clusters can lower the loss"
FEWER_HELP = "with four parties fewer local clusters than clusters are better than more"
AUTOMATIC_IS_GOOD = (
    "the number of local clusters that the rule chooses is close to the best "
    f"(here: at most {ALIKE:.0%} above)"
)
