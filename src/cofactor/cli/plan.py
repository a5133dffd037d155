"""`cofactor plan`: what a schedule of noisy releases costs, before any data are read."""

from collections.abc import Sequence
from copy import copy
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn, cast

import typer

from cofactor.cli import choose, options
from cofactor.cli.plan_recipe import budget_of, needs_of, recipe_of, tell
from cofactor.cli.settings import BudgetWish, RecipeWish, WeightsWish, options_of
from cofactor.cli.weights import personal_plan
from cofactor.config import one_of
from cofactor.errors import ConfigError

if TYPE_CHECKING:
    from cofactor.data.public_items import PublicItems
    from cofactor.privacy.mechanisms import AnyMechanism

MECHANISMS = ("gaussian", "laplace", "discrete-gaussian", "discrete-laplace", "skellam", "poisson-binomial")
BY_HAND = (
    "rounds",
    "noise_multiplier",
    "mechanism",
    "bound",
    "sampling",
    "steps",
    "numbers",
    "shared_users",
    "trials",
    "theta",
)
"""Options that make a schedule by hand: a recipe makes its own."""
_NO_PAGE = ("public_items", "user_weights", "item_weights", "personal", "threshold")
"""Options that a page does not know."""
_OF_A_PAGE = ("minutes", "force")


def plan(
    context: typer.Context,
    delta: Annotated[
        float | None,
        typer.Option(
            help="Probability that the promise fails: far below 1 / users; 0 with laplace. "
            "Needed, but for a page."
        ),
    ] = None,
    rounds: Annotated[
        int | None,
        typer.Option(
            help="How many rounds; a recipe chooses them itself, or, for a page, may let you choose them."
        ),
    ] = None,
    recipe: Annotated[
        str | None,
        typer.Option(help=f"Plan a recipe at its defaults: {', '.join(choose.PLANNED)}."),
    ] = None,
    sum_: options.Sum = None,
    dropout: options.Dropout = None,
    colluding: options.Colluding = None,
    decrypters: options.Decrypters = None,
    scheme: options.Scheme = None,
    local_steps: Annotated[
        int | None, typer.Option(help="With --recipe: steps of a party between two rounds.")
    ] = None,
    public_items: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="With --recipe: a table of what is public about the items."),
    ] = None,
    items: Annotated[int | None, typer.Option(help="With --recipe: how many items there are.")] = None,
    ratings: Annotated[int | None, typer.Option(help="With --recipe: how many ratings there are.")] = None,
    epsilon: Annotated[float | None, typer.Option(help="The budget; the noise is chosen to keep it.")] = None,
    noise_multiplier: Annotated[
        float | None, typer.Option(help="Noise divided by the bound, to learn the epsilon that it costs.")
    ] = None,
    mechanism: Annotated[str, typer.Option(help=f"One of {', '.join(MECHANISMS)}.")] = "gaussian",
    bound: Annotated[float, typer.Option(help="The most that one unit contributes.")] = 1.0,
    sampling: Annotated[
        float | None, typer.Option(help="Probability with which each user takes part in a step, in secret.")
    ] = None,
    steps: Annotated[int, typer.Option(help="Noisy steps in each round.")] = 1,
    numbers: Annotated[
        int | None, typer.Option(help="How many numbers a message holds; 1 if left out.")
    ] = None,
    parties: Annotated[int, typer.Option(help="How many parties; left out for devices.")] = 1,
    shared_users: Annotated[
        bool, typer.Option("--shared-users", help="Parties hold parts of the same users (vertical).")
    ] = False,
    users: Annotated[
        int | None, typer.Option(help="How many users there are in all parties together, if that is public.")
    ] = None,
    trials: Annotated[int, typer.Option(help="poisson-binomial: coin tosses for each number.")] = 16,
    theta: Annotated[
        float | None, typer.Option(help="poisson-binomial: bend of the coins, instead of a noise multiplier.")
    ] = None,
    unit: Annotated[
        str | None, typer.Option(help="Who is protected: user or rating; the recipe's usual, else user.")
    ] = None,
    adjacency: Annotated[
        str | None,
        typer.Option(
            help="Compared with what: empty (the ratings become nothing), replace (any others), value (other "
            "values; who rated what is public); the recipe's usual, else empty."
        ),
    ] = None,
    user_weights: Annotated[
        str | None,
        typer.Option(
            metavar="TOML|hdpmf",
            help="With --recipe: the groups that users may choose between, each promised a part of epsilon: "
            "hdpmf for the paper's, or a TOML file with a table weights. Nobody's weights are read.",
        ),
    ] = None,
    item_weights: Annotated[
        str | None,
        typer.Option(metavar="FILE|hdpmf", help="With --user-weights: weights of items, which are public."),
    ] = None,
    personal: options.Personal = None,
    threshold: options.Threshold = None,
    open_: Annotated[
        bool,
        typer.Option(
            "--open",
            help="Make a page to choose on, with the accuracy on made-up ratings, and show it in a browser; "
            "what is left out is chosen.",
        ),
    ] = False,
    out: Annotated[
        Path | None, typer.Option(help="The page's folder; plans/<time> if left out. Makes a page, too.")
    ] = None,
    minutes: Annotated[
        float | None, typer.Option(help="With a page: how long to try things out; 1 if left out.")
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="With a page: replace a plan that is already there.")
    ] = False,
    quiet: options.Quiet = False,
    json: options.Json = False,
) -> None:
    """Say what noise a schedule needs, or what epsilon its noise costs, round by round. Reads no data.

    With --open or --out it makes a page instead, on which all of that can be chosen.
    """
    from cofactor.privacy.budget import ADJACENCIES, UNITS, Adjacency, Budget, Unit
    from cofactor.privacy.events import Bound
    from cofactor.privacy.plan import needed
    from cofactor.privacy.plan import plan as make
    from cofactor.privacy.schedule import Release, Schedule
    from cofactor.recipes.plan import plan as plan_recipe

    one_of(ADJACENCIES, adjacency=adjacency or "empty")
    policy = WeightsWish(users=user_weights, items=item_weights, personal=personal, threshold=threshold)
    wish = RecipeWish(
        recipe=recipe,
        sum=sum_,
        dropout=dropout,
        colluding=colluding,
        decrypters=decrypters,
        scheme=scheme,
        numbers={} if local_steps is None else {"local_steps": local_steps},
    )
    if open_ or out is not None:
        from cofactor.cli.plan_page import PageWish, make_page

        _check_for_a_page(context)
        make_page(
            PageWish(
                recipe=wish,
                users=users,
                items=items,
                ratings=ratings,
                parties=parties,
                rounds=rounds,
                budget=BudgetWish(epsilon=epsilon, delta=delta, unit=unit, adjacency=adjacency),
                minutes=1.0 if minutes is None else minutes,
                out=out,
                force=force,
            ),
            opened=open_,
            quiet=quiet,
            as_json=json,
        )
        return
    if delta is None:
        _refuse_missing(context, "delta")
    _check_said(context, _OF_A_PAGE, "only a page has {}. Add --open or --out, or leave it out.")
    if recipe is not None:
        _check_nothing_by_hand(context)
        sizes: dict[str, Any] = {"users": users, "items": items, "ratings": ratings, "parties": parties}
        sizes["public_items"] = _public(public_items)
        chosen_recipe = recipe_of(wish)
        budget = budget_of(chosen_recipe, epsilon, delta, unit, adjacency)
        shared = personal_plan(chosen_recipe, budget, policy)
        tell(
            plan_recipe(chosen_recipe, shared or budget, **sizes),
            needs_of(chosen_recipe, users, parties),
            shared,
            as_json=json,
        )
        return
    if options_of(policy):
        raise ConfigError(f"{', '.join(options_of(policy))}: only a recipe can use weights. Name --recipe.")
    adjacency = adjacency or "empty"
    if options_of(wish):
        raise ConfigError(f"{', '.join(options_of(wish))}: only a recipe adds up. Name one with --recipe.")
    if public_items is not None:
        raise ConfigError("--public-items: only a recipe can use them. Name one with --recipe.")
    unit = unit or "user"
    one_of(MECHANISMS, mechanism=mechanism)
    one_of(UNITS, unit=unit)
    if rounds is None:
        raise ConfigError("name --rounds, or a recipe that chooses them: --recipe secure-als.")
    about: dict[str, Any] = {"unit": cast(Unit, unit), "adjacency": cast(Adjacency, adjacency)}
    noise = _noise(mechanism, noise_multiplier, theta)
    if epsilon is None and noise is None:
        raise ConfigError(
            "give --epsilon to learn the noise, or --noise-multiplier to learn the epsilon (--theta with "
            "poisson-binomial)."
        )
    if mechanism == "poisson-binomial" and numbers is None:
        raise ConfigError("poisson-binomial needs --numbers: each number of a message costs.")
    participants = users // parties if users is not None and not shared_users else users
    chosen = _mechanism(mechanism, noise, sampling=sampling, trials=trials, participants=participants)
    release = Release(
        what="each message",
        mechanism=chosen,
        bound=Bound(
            size=bound,
            norm=chosen.norm,
            unit=about["unit"],
            adjacency="replace" if chosen.norm in ("max", "choice") else "empty",
        ),
        dimension=1 if numbers is None else numbers,
        times=steps,
    )
    schedule = Schedule(
        releases=(release,),
        rounds=rounds,
        parties=parties,
        # A rating is at one party, even if its user is at several.
        shared_units=shared_users and unit == "user",
        users=users,
    )
    if epsilon is None:
        budget = needed(schedule, delta=delta, **about)
    else:
        budget = Budget(epsilon=epsilon, delta=delta, **about)
    tell(make(schedule, budget, keep_noise=noise is not None), None, None, as_json=json)


def _check_nothing_by_hand(context: typer.Context) -> None:
    _check_said(
        context,
        BY_HAND,
        "a recipe makes its schedule itself. Leave out {}, or --recipe. A page (--out) takes --rounds.",
    )


def _check_for_a_page(context: typer.Context) -> None:
    """Refuse what a page does not show."""
    by_hand = [name for name in BY_HAND if name != "rounds"]
    _check_said(
        context,
        by_hand,
        "a page plans a recipe, which makes its schedule itself. Leave out {}, or --open and --out.",
    )
    _check_said(
        context,
        _NO_PAGE,
        "a page knows neither weights nor public items: its ratings are made up. Leave out {}, or --open "
        "and --out.",
    )


def _check_said(context: typer.Context, names: Sequence[str], why: str) -> None:
    """Refuse options that were said, all at once."""
    options = [each for each in context.command.params if each.name in names]
    said = [each.opts[0] for each in options if context.params[each.name] != each.default]
    if said:
        raise ConfigError(why.format(", ".join(said)))


def _refuse_missing(context: typer.Context, name: str) -> NoReturn:
    """Refuse to go on without an option that only a page can do without."""
    option = copy(next(each for each in context.command.params if each.name == name))
    option.required = True
    option.process_value(context, None)
    raise AssertionError


def _public(wanted: str | None) -> "PublicItems | None":
    from cofactor.data.public_items import PublicItems

    if wanted == "auto":
        raise ConfigError("a plan reads no ratings, so that no table came with them. Name its file.")
    return None if wanted is None else PublicItems.from_file(wanted)


def _noise(mechanism: str, noise_multiplier: float | None, theta: float | None) -> float | None:
    """Return the noise that was stated, in the option that belongs to the mechanism."""
    bent = mechanism == "poisson-binomial"
    if bent and noise_multiplier is not None:
        raise ConfigError("the noise of poisson-binomial is --theta, not --noise-multiplier.")
    if not bent and theta is not None:
        raise ConfigError(f"--theta is for poisson-binomial; the noise of {mechanism} is --noise-multiplier.")
    return theta if bent else noise_multiplier


def _mechanism(
    name: str, noise: float | None, *, sampling: float | None, trials: int, participants: int | None
) -> "AnyMechanism":
    """Build the mechanism; without a stated noise, one that calibration will scale."""
    from cofactor.privacy import mechanisms

    if sampling is not None and name != "gaussian":
        raise ConfigError(f"--sampling is accounted for with the gaussian mechanism only, not with {name}.")
    if name == "poisson-binomial":
        if not participants:
            raise ConfigError("poisson-binomial needs --users, some at each party: they hide each other.")
        theta = 0.25 if noise is None else noise
        return mechanisms.PoissonBinomial(trials=trials, theta=theta, participants=participants)
    multiplier = 1.0 if noise is None else noise
    if sampling is not None:
        return mechanisms.SampledGaussian(noise_multiplier=multiplier, sampling=sampling)
    kinds: dict[str, Any] = {
        "gaussian": mechanisms.Gaussian,
        "laplace": mechanisms.Laplace,
        "discrete-gaussian": mechanisms.DiscreteGaussian,
        "discrete-laplace": mechanisms.DiscreteLaplace,
        "skellam": mechanisms.Skellam,
    }
    chosen: AnyMechanism = kinds[name](noise_multiplier=multiplier)
    return chosen
