"""Numbers as they are printed: promises rounded up, never down, and keys as people compare them."""

import math
from decimal import ROUND_CEILING, Context, Decimal
from hashlib import sha256


def rounded_up(value: float, digits: int = 3) -> str:
    """Write a number with so many significant digits, never less than it is but for its last few bits."""
    exact = Context(prec=10).create_decimal(repr(float(value)))
    return f"{float(Context(prec=digits, rounding=ROUND_CEILING).create_decimal(exact)):.{digits}g}"


def at_most(value: float) -> float:
    """Return a number that is not less where four digits of it are written."""
    return float(rounded_up(value, 4))


def at_least(value: float) -> float:
    """Return a number that is not more where four digits of it are written."""
    return -at_most(-value)


def percent(share: float) -> str:
    """Write a share in percent, rounded up; 100% only if it is not less, to a millionth."""
    exact = Decimal(repr(float(share))) * 100
    for decimals in range(1, 7):
        written = exact.quantize(Decimal(1).scaleb(-decimals), rounding=ROUND_CEILING)
        if written < 100:
            return f"{written}%"
    return "100%"


def number_of(count: int, one: str, many: str = "") -> str:
    """Write a count with what was counted: 1 round, 2 rounds; `many` where no s is added."""
    return f"1 {one}" if count == 1 else f"{count:,} {many or f'{one}s'}"


def finite(value: float) -> float | None:
    """Return the number for JSON, which knows no infinity."""
    return value if math.isfinite(value) else None


def readable(count: float) -> str:
    """Write a number of bytes as people do."""
    if count == 1:
        return "1 byte"
    for unit in ("bytes", "kB", "MB", "GB"):
        if count < 999.5:
            return f"{count:.3g} {unit}"
        count /= 1000
    return f"{count:,.3g} TB"


def lasting(seconds: float) -> str:
    """Write how long something took, or will take, as people do."""
    if seconds < 60:
        return f"{seconds:.2g} s" if seconds < 10 else f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s" if rest else f"{minutes} min"
    return f"{minutes // 60} h {minutes % 60} min"


def fingerprint(key: bytes) -> str:
    """Return what people compare, by telephone or on paper: eight groups of four digits, 128 bits."""
    digits = sha256(b"cofactor identity\n" + key).hexdigest()
    return " ".join(digits[at : at + 4] for at in range(0, 32, 4))
