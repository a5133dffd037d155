"""Large whole numbers: the one place that loads gmpy2, which is an extra."""

from typing import Any

from cofactor.errors import ConfigError

Number = Any
"""A whole number of gmpy2 (mpz), which has no types of its own."""


def gmp() -> Any:
    """Return the module gmpy2; ConfigError with the line that installs it, where it is missing."""
    try:
        import gmpy2
    except ImportError:
        raise ConfigError(
            "Paillier's encryption needs the package gmpy2. Run: pip install gmpy2 (or, in a clone, pip "
            "install '.[cluster,he]')"
        ) from None
    return gmpy2
