"""All commands, flat."""

from typing import Annotated

import typer

from cofactor.cli import (
    audit,
    budget,
    cluster,
    compare,
    data,
    demo,
    doctor,
    export,
    host,
    join,
    plan,
    recommend,
    report,
    reproduce,
    segments,
    show,
    survey,
    sweep,
    train,
    verify,
)

app = typer.Typer(
    name="cofactor",
    help="Train recommenders on ratings that their holders may not share.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(wanted: bool) -> None:
    if wanted:
        from cofactor import __version__

        print(f"cofactor {__version__}")
        raise typer.Exit


@app.callback()
def cofactor(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """Train recommenders on ratings that their holders may not share."""


app.command()(demo.demo)
app.command()(plan.plan)
app.command()(train.train)
app.command()(sweep.sweep)
app.command()(survey.survey)
app.command()(cluster.cluster)
app.command()(segments.segments)
app.command()(show.show)
app.command()(compare.compare)
app.command()(verify.verify)
app.command()(audit.audit)
app.command()(report.report)
app.command()(recommend.recommend)
app.command()(export.export)
app.command()(budget.budget)
app.command()(reproduce.reproduce)
app.command()(doctor.doctor)
app.add_typer(data.app, name="data")
app.add_typer(host.app, name="host")
app.add_typer(join.app, name="join")
