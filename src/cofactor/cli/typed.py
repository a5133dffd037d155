"""What was typed, as it may be told of, without passwords; and what is to be typed."""

import re
import shlex
import sys
from collections.abc import Iterable


def typed() -> list[str]:
    """Return the command that was typed, to be told of: without the password that its URI may have."""
    pairs = zip(sys.argv, sys.argv[1:], strict=False)
    words = [masked(word) if "--mlflow" in (last, word.partition("=")[0]) else word for last, word in pairs]
    return ["cofactor", *words]


def masked(text: str) -> str:
    """Hide who logs in, and what a URI asks with: passwords stand in both, and may hold any letter."""
    return re.sub(r"\?\S*=\S*", "?***", re.sub(r"(?<!file:)(?<!/)//.*@", "//***@", text))


def command_lines(words: Iterable[object]) -> str:
    """Write a command, broken before options where it grows long."""
    lines, line = [], ""
    for word in (shlex.quote(str(each)) for each in words):
        if len(line) > 70 and word.startswith("--"):
            lines.append(line)
            line = "   "
        line = f"{line} {word}" if line else word
    return " \\\n".join([*lines, line])
