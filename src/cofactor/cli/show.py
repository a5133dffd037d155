"""`cofactor show`: what a run folder holds."""

from typing import Any

from cofactor.cli import options
from cofactor.cli.text import RED, print_json, print_line, print_scores


def show(run: options.RunFolder, json: options.Json = False) -> None:
    """Show what a run is, how it was made and how well it does."""
    from cofactor.federation.folder import read_facts

    facts = read_facts(run)
    if json:
        print_json({"run": str(run)} | facts)
        return
    data = facts["data"]
    print_line(f"{run}: trained {facts['created']} in {facts['seconds']:.1f} s, seed {facts['seed']}")
    print_line(
        f"  data    {data['ratings']:,} ratings by {data['users']:,} users of {data['items']:,} items, "
        f"{data['scale']}"
    )
    print_line(f"  recipe  {_words(facts['recipe'])}")
    print_scores(facts["scores"])
    print_line(facts["guarantee"]["statement"], "" if facts["guarantee"]["holds"] else RED)


def _words(table: dict[str, Any]) -> str:
    """Write a settings table as it would be typed in Python."""
    settings = [
        f"{name}={_words(value) if isinstance(value, dict) else value}"
        for name, value in table.items()
        if name != "kind"
    ]
    return f"{table['kind']}({', '.join(settings)})"
