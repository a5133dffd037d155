"""Li et al. (PVLDB 2022), section 6.3: Figure 10, about users who keep their ratings on their own devices."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product

from cofactor.evaluate.joining import own_means
from cofactor.factors.model import Factors
from cofactor.federation.federation import Federation
from cofactor.papers.cells import PER, Cell, Dealing, Effort
from cofactor.papers.claims import Claim, Line, lower
from cofactor.papers.material import Material
from cofactor.papers.results import ANY_EPSILON, Row
from cofactor.recipes.local_reports import LocalReports
from cofactor.recipes.on_device import OnDeviceMF
from cofactor.recipes.sums import PlainSum, SecureSum

PUBLISHED, LOCAL, DEFAULTS = "LFL-SGDMF", "GD-DR", "cofactor's defaults"
LDP_NOISE = "LFL-SGDMF, LDP-level noise"
STAGE_1, OWN_MEAN, WITHOUT_NOISE = "stage 1 only", "user mean", "without noise"
TENFOLD = 10

_EPSILONS, _FEW = (0.5, 1.0, 2.0, 4.0, 10.0), (1.0, 10.0)
"""The text does not say which epsilons the figure shows; these are ours, and those of figures 4 to 7."""
_DROPOUTS = {0.3: (0.0, 0.1, 0.2), 0.6: (0.0, 0.1, 0.2, 0.3, 0.4, 0.5)}
"""By omega, the largest dropout that is tolerated, those that are shown."""
_DEVICES = Dealing(split="on-device")
_SHUFFLED = (
    "The epsilon of its column is what it would cost if somebody whom all trust shuffled the reports, as the "
    "paper reckons; nobody does, and what is proved is a larger, local epsilon. Its users are fitted at home "
    "like those of LFL-SGDMF."
)


def figure10(material: Material, effort: Effort) -> list[Cell]:  # noqa: ARG001 (all data alike)
    """Dropouts, and what devices have without sums of which nobody sees the parts."""
    found = [
        cell
        for omega in _DROPOUTS
        for cell in (*_private(omega, effort), *_compared(omega, effort), *_levels(omega))
    ]
    # The paper's other unit, which cannot be had: the row says why.
    refused = _cell(PUBLISHED, 0.3, published(0.3), epsilon=_FEW[-1], panel=PER["rating"])
    return [*found, replace(refused, unit="rating")]


def tenfold(material: Material, effort: Effort) -> list[Cell]:  # noqa: ARG001 (all data alike)
    """What ten times as many users would change: every one of them takes part ten times."""
    more = Dealing(split="on-device", replicas=TENFOLD)
    lines = {PUBLISHED: OnDeviceMF.as_published(), DEFAULTS: OnDeviceMF()}
    found = [
        _cell(line, 0.3, recipe, epsilon=epsilon, panel=_times(dealing.replicas), dealing=dealing)
        for dealing, (line, recipe), epsilon in product(
            (_DEVICES, more), lines.items(), effort.shown(_EPSILONS, _FEW)
        )
    ]
    levels = {STAGE_1: stage_1, OWN_MEAN: own_mean, WITHOUT_NOISE: OnDeviceMF.as_published()}
    return found + [
        Cell(
            line=line,
            panel=_times(dealing.replicas),
            column=ANY_EPSILON,
            dealing=dealing,
            recipe=recipe,
            note=_NOTES[line],
        )
        for dealing, (line, recipe) in product((_DEVICES, more), levels.items())
    ]


def published(omega: float) -> OnDeviceMF:
    """Return the paper's setting with the largest dropout that is tolerated."""
    recipe = OnDeviceMF.as_published()
    assert isinstance(recipe.aggregate, SecureSum)
    return replace(recipe, aggregate=replace(recipe.aggregate, dropout=omega))


def stage_1(federation: Federation, seed: int) -> Mapping[str, Factors]:
    """Return what the paper's devices have before the first round."""
    return OnDeviceMF.as_published().alone(federation, seed=seed)


def own_mean(federation: Federation, seed: int) -> Mapping[str, Factors]:  # noqa: ARG001 (nothing is random)
    """Return what devices have of their own."""
    return {party.name: own_means(party.ratings, federation.scale) for party in federation.parties}


_NOTES = {
    STAGE_1: "nothing leaves a device",
    OWN_MEAN: "nothing leaves a device",
    WITHOUT_NOISE: "LFL-SGDMF, not private",
}


def _private(omega: float, effort: Effort) -> list[Cell]:
    return [
        _cell(_dropping(dropout), omega, published(omega), epsilon=epsilon, dropout=dropout)
        for dropout, epsilon in product(_DROPOUTS[omega], effort.shown(_EPSILONS, _FEW))
    ]


def _compared(omega: float, effort: Effort) -> list[Cell]:
    """Return what the paper compares with, and our own defaults; none of it knows dropouts here."""
    ours = OnDeviceMF()
    assert isinstance(ours.aggregate, SecureSum)
    epsilons = effort.shown(_EPSILONS, _FEW)
    tolerant = replace(ours, aggregate=replace(ours.aggregate, dropout=omega))
    return [
        *(_cell(DEFAULTS, omega, tolerant, epsilon=epsilon) for epsilon in epsilons),
        *(
            _cell(LDP_NOISE, omega, replace(published(omega), aggregate=PlainSum()), epsilon=epsilon)
            for epsilon in epsilons
        ),
        *(
            replace(_cell(LOCAL, omega, LocalReports(), epsilon=epsilon), if_shuffled=True, note=_SHUFFLED)
            for epsilon in epsilons
        ),
    ]


def _levels(omega: float) -> list[Cell]:
    recipes = {STAGE_1: stage_1, OWN_MEAN: own_mean, WITHOUT_NOISE: published(omega)}
    return [
        Cell(
            line=line,
            panel=_panel(omega),
            column=ANY_EPSILON,
            dealing=_DEVICES,
            recipe=recipe,
            note=_NOTES[line],
        )
        for line, recipe in recipes.items()
    ]


def _cell(
    line: str,
    omega: float,
    recipe: OnDeviceMF | LocalReports,
    *,
    epsilon: float,
    dropout: float = 0.0,
    panel: str = "",
    dealing: Dealing = _DEVICES,
) -> Cell:
    return Cell(
        line=line,
        panel=panel or _panel(omega),
        dealing=dealing,
        recipe=recipe,
        unit="user",
        epsilon=epsilon,
        dropout=dropout,
    )


def claims10() -> list[Claim]:
    """Sums are said to be better than local reports, and dropouts to matter little."""
    return [claim for omega in _DROPOUTS for claim in (*_against_local(omega), *_of_dropouts(omega))] + [
        Claim(
            says="without dropouts omega = 0.6 has almost the same errors as omega = 0.3",
            lower=Line(line=_dropping(0.0), panel=_panel(0.6)),
            than=Line(line=_dropping(0.0), panel=_panel(0.3)),
            alike=True,
        ),
        *(
            Claim(
                says=f"with a dropout of {dropout:g} omega = 0.3 has lower errors than omega = 0.6",
                lower=Line(line=_dropping(dropout), panel=_panel(0.3)),
                than=Line(line=_dropping(dropout), panel=_panel(0.6)),
            )
            for dropout in _DROPOUTS[0.3][1:]
        ),
    ]


def _against_local(omega: float) -> list[Claim]:
    panel = _panel(omega)
    sums, first = Line(line=_dropping(0.0), panel=panel), Line(line=STAGE_1, panel=panel)
    local = Line(line=LOCAL, panel=panel)
    return [
        Claim(
            says=f"{PUBLISHED} has lower errors than {LOCAL}",
            lower=sums,
            also=tuple(Line(line=_dropping(each), panel=panel) for each in _DROPOUTS[omega][1:]),
            than=local,
        ),
        Claim(says=f"already stage 1 has lower errors than {LOCAL}", lower=first, than=local),
        Claim(
            says="with LDP-level noise cooperation cannot help: errors are no lower than those of stage 1",
            lower=Line(line=LDP_NOISE, panel=panel),
            than=first,
            no_lower=True,
        ),
    ]


def _of_dropouts(omega: float) -> list[Claim]:
    most = _DROPOUTS[omega][-1]
    return [
        Claim(
            says=f"errors rise a little with dropouts: those with none are lower than with {most:g}",
            lower=Line(line=_dropping(0.0), panel=_panel(omega)),
            than=Line(line=_dropping(most), panel=_panel(omega)),
        )
    ]


def ours(rows: Sequence[Row]) -> list[str]:
    """Say at which epsilons what was trained beats each user's own mean, which costs nothing."""
    found = [
        "All devices are played by one, so that their secure sums are simulated; epsilons are those that "
        "real sums would have."
    ]
    for panel in dict.fromkeys(row.panel for row in rows):
        means = Line(line=OWN_MEAN, panel=panel).among(rows)
        for line in (_dropping(0.0), PUBLISHED, DEFAULTS):
            errors = Line(line=line, panel=panel).among(rows)
            if errors and means:
                found.append(_beaten(f"{panel}: {line}", errors, means[ANY_EPSILON]))
    return found


def ours_tenfold(rows: Sequence[Row]) -> list[str]:
    """Say the same of ten times as many users, and what they are."""
    return [
        "Users who take part ten times stand for ten times as many users. What is protected is each time "
        "that a user takes part, so nobody should do so.",
        *ours(rows),
    ]


def _beaten(who: str, errors: Mapping[str, float], mean: float) -> str:
    better = [column for column, error in errors.items() if lower(error, mean)]
    others = [column for column in errors if column not in better]
    parts = [f"lower at {', '.join(better)}"] if better else []
    parts += [f"not lower at {', '.join(others)}"] if others else []
    return f"{who}, beside the user's own mean ({mean:.3f}), which costs no privacy: {'; '.join(parts)}."


def _dropping(dropout: float) -> str:
    return f"{PUBLISHED}, dropout {dropout:g}"


def _panel(omega: float) -> str:
    return f"omega = {omega:g}"


def _times(replicas: int) -> str:
    return "every user once" if replicas == 1 else f"every user {replicas} times"
