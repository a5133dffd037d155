"""Options that several commands share, said once."""

from pathlib import Path
from typing import Annotated

import typer

from cofactor.recipes.named import RECIPES

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of text.")]
Seed = Annotated[int, typer.Option(help="Seed for splits and initial factors.", min=0)]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress lines.")]
Force = Annotated[bool, typer.Option("--force", help="Replace a run folder that is already there.")]
RunFolder = Annotated[Path, typer.Argument(metavar="RUN", help="A run folder, as 'cofactor train' makes it.")]
RatingsFile = Annotated[
    Path,
    typer.Argument(
        metavar="FILE", help="Ratings: csv, tsv, parquet, MovieLens or RecBole; plain, .gz or .zip."
    ),
]
PartyFiles = Annotated[
    list[Path],
    typer.Argument(
        metavar="FILE",
        help="Ratings: csv, tsv, parquet, MovieLens or RecBole; plain, .gz or .zip. Several files are "
        "several parties.",
    ),
]
Split = Annotated[
    str | None,
    typer.Option(
        help="How parties relate: horizontal (different users), vertical (different items of the same users) "
        "or on-device (every user of one file is one, or every file)."
    ),
]
Align = Annotated[
    str | None,
    typer.Option(
        help="With --split vertical: union (all users; every party learns all ids of the others) or psi "
        "(only users whom all parties have, found by private set intersection); union, if left out."
    ),
]
Among = Annotated[
    str | None,
    typer.Option(
        help="With --align psi and more than two files: leader (the first learns whom it shares with each "
        "other) or chain (each learns who is common to all before it and itself); leader, if left out."
    ),
]
IdRule = Annotated[
    str | None,
    typer.Option(
        help="With --align psi: how ids are compared: exact, or folded (upper and lower case are the same)."
    ),
]
Sum = Annotated[
    str | None,
    typer.Option(
        "--sum",
        help="How answers are added up: plain (each is seen), secure (only the sum is; with one local step "
        "parties share its noise), encrypted or shared (decrypters among the parties open only the sum) or "
        "ideal (a secure sum simulated); the recipe's usual, if left out.",
    ),
]
Decrypters = Annotated[
    int | None,
    typer.Option(help="With an encrypted or shared sum: how many parties open it; usually three."),
]
Scheme = Annotated[
    str | None,
    typer.Option(
        help="With an encrypted sum: paillier (two decrypters must come together), paillier-root (faster, "
        "unreviewed), bfv, ckks (lattices; every decrypter has the key) or shared-key (unsafe: the paper's)."
    ),
]
Dropout = Annotated[
    float | None,
    typer.Option(
        help="With a sum that hides answers: the largest part of the parties that may drop out of a round; "
        "the recipe's usual, if left out."
    ),
]
Colluding = Annotated[
    float | None,
    typer.Option(
        help="With a sum that hides answers: the part of the parties that may tell the coordinator all; the "
        "recipe's usual, if left out."
    ),
]
Parties = Annotated[
    int | None, typer.Option(help="Deal one file out to so many make-believe parties: a simulation.")
]
Capture = Annotated[
    list[str] | None,
    typer.Option(
        metavar="ROLE",
        help="Simulations only: keep all that a role sees, for 'cofactor audit': coordinator, or party:NAME; "
        "several with commas. UNSAFE to share: the ratings lie beside it.",
    ),
]
PublicItems = Annotated[
    str | None,
    typer.Option(
        metavar="FILE|auto",
        help="Declare what a table says about the items (genres, years, prices ...) to be public, and use "
        "it; auto: the table that came with the ratings, or --items.",
    ),
]
UserAttributes = Annotated[
    str | None,
    typer.Option(
        metavar="FILE|auto",
        help="Use what a table says about the users (age, gender ...), which stays with their party; auto: "
        "the table that came with the ratings. For recipes that can, such as multi-view.",
    ),
]
UserWeights = Annotated[
    list[str] | None,
    typer.Option(
        metavar="FILE|hdpmf",
        help="A table with a weight (above 0, at most 1) or a group (conservative, moderate, liberal) of "
        "each user, who is promised that part of epsilon; private. Once for all, or once for each file of "
        "ratings. hdpmf: draw them as the paper did, for a simulation.",
    ),
]
ItemWeights = Annotated[
    str | None,
    typer.Option(
        metavar="FILE|hdpmf",
        help="The same of items: public. Where each rating is protected, by the product of both.",
    ),
]
OtherWeights = Annotated[
    str | None,
    typer.Option(metavar="WEIGHT", help="A weight, or a group of users, for all whom a file leaves out."),
]
Personal = Annotated[
    str | None,
    typer.Option(
        help="How users with small weights are protected more: stretching (they contribute less; if left "
        "out) or sampling (they take part by chance)."
    ),
]
Threshold = Annotated[
    float | None,
    typer.Option(help="With sampling: what is lost by whoever takes part; about the mean, if left out."),
]
ChooseCap = Annotated[
    float | None,
    typer.Option(
        metavar="EPSILON",
        help="First ask all users privately how many ratings they have, for this part of the budget, and "
        "choose from it how many of each are used. For recipes that have most_ratings.",
    ),
]
SurveyMean = Annotated[
    float | None,
    typer.Option(
        metavar="EPSILON",
        help="First ask all users privately for one rating each, for this part of the budget, and centre "
        "ratings on their mean. For recipes that have a centre.",
    ),
]
Items = Annotated[Path | None, typer.Option(help="Table of items with titles, if not beside FILE.")]
Scale = Annotated[str | None, typer.Option(metavar="LOW:HIGH", help="Rating scale, such as 1:5.")]
Duplicates = Annotated[str, typer.Option(help="Pairs rated twice: error, last or mean.")]
Member = Annotated[str | None, typer.Option(help="The right file in a .zip that holds several.")]
UserColumn = Annotated[str | None, typer.Option("--user", metavar="COLUMN", help="Column with the user ids.")]
ItemColumn = Annotated[str | None, typer.Option("--item", metavar="COLUMN", help="Column with the item ids.")]
RatingColumn = Annotated[
    str | None, typer.Option("--rating", metavar="COLUMN", help="Column with the ratings.")
]
TimeColumn = Annotated[str | None, typer.Option("--time", metavar="COLUMN", help="Column with the times.")]
Implicit = Annotated[
    bool, typer.Option("--implicit", help="Rows only tell that something happened; no ratings.")
]
Drop = Annotated[
    float | None,
    typer.Option(help="Simulate: part of the devices whose answers are lost in each round."),
]
Delta = Annotated[
    float | None,
    typer.Option(
        help="Probability that epsilon may fail; if left out 1e-6, 0.1 / units if less (ratings: 1e-9)."
    ),
]
Unit = Annotated[
    str | None, typer.Option(help="Who is protected: user or rating; the recipe's usual, if left out.")
]
Adjacency = Annotated[
    str | None,
    typer.Option(
        help="Compared with what: empty, replace or value (who rated what is public); the recipe's "
        "usual, if left out."
    ),
]
Recipe = Annotated[
    str | None,
    typer.Option(help=f"How to train: {', '.join(RECIPES)}; the recommended one, if left out."),
]
Published = Annotated[
    bool, typer.Option("--published", help="The recipe as its paper sets it, not what works best.")
]
Model = Annotated[
    str | None,
    typer.Option(help="Pooled: sgd, als, bayes or implicit; chosen from the data if left out."),
]
Factors = Annotated[int | None, typer.Option(help="Length of each vector.")]
Rounds = Annotated[
    int | None,
    typer.Option(help="How often the parties exchange messages; secure-als and shared-biases choose it."),
]
LocalSteps = Annotated[int | None, typer.Option(help="Steps of a party between two rounds.")]
Epochs = Annotated[int | None, typer.Option(help="Pooled: passes over the ratings.")]
Config = Annotated[
    Path | None,
    typer.Option(help="TOML file with tables recipe, budget, federation, weights, survey, attributes."),
]
MLflow = Annotated[
    str | None,
    typer.Option(
        "--mlflow",
        metavar="URI",
        help="Log the finished run to MLflow there: settings, promise, costs, report, and errors, which are "
        "measured with private ratings. Never a model or a ledger.",
    ),
]
