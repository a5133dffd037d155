"""What was typed, as it may be told of: passwords stand in URIs."""

import re
import sys


def typed() -> list[str]:
    """Return the command that was typed, to be told of: without the password that its URI may have."""
    pairs = zip(sys.argv, sys.argv[1:], strict=False)
    words = [masked(word) if "--mlflow" in (last, word.partition("=")[0]) else word for last, word in pairs]
    return ["cofactor", *words]


def masked(text: str) -> str:
    """Hide who logs in, and what a URI asks with: passwords stand in both, and may hold any letter."""
    return re.sub(r"\?\S*=\S*", "?***", re.sub(r"(?<!file:)(?<!/)//.*@", "//***@", text))
