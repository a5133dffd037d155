"""One exception tree. Every message says what is wrong, where, and what to do.

CofactorError
├── DataError          a file, table or rating that cannot be used
│   └── RatedTwice     a user rated an item more than once (in data.duplicates)
├── ConfigError        a setting that makes no sense
├── RunError           a run folder that cannot be read or written
├── UnknownId          a user or item the data or model does not know
├── LedgerError        a ledger that was damaged or belongs to other data
│   └── TornLine       a crash cut off its last line (in privacy.chain)
├── ProtocolError      a message of a secure sum that is malformed, foreign, replayed or not allowed
│   └── TooFew         fewer parties are left than were promised; nothing is opened
└── Refused            we could, but must not (a budget, a policy, a bad checksum)
    ├── BudgetExceeded a release that would spend more than the budget; nothing was released
    └── DownloadError  the publisher could not be reached, or sent something else

PrivacyWarning is no error: a promise that can be kept, but is weaker than its reader may think.
"""

import difflib
from collections.abc import Iterable

DAMAGES = (KeyError, TypeError, ValueError, AttributeError, IndexError, ArithmeticError, RecursionError)
"""What reading a damaged file can raise."""


class CofactorError(Exception):
    """Something the caller can put right; the message says how."""

    exit_code = 2


class DataError(CofactorError):
    """A file, table or rating that cannot be used."""


class ConfigError(CofactorError):
    """A setting that makes no sense."""


class RunError(CofactorError):
    """A run folder that cannot be read or written."""


class UnknownId(CofactorError):
    """A user or item that the data or the model does not know."""


class LedgerError(CofactorError):
    """A ledger that was damaged, tampered with, or belongs to other data."""


class ProtocolError(CofactorError):
    """A message of a secure sum that is malformed, foreign, replayed, or asks for what must not be told."""


class TooFew(ProtocolError):
    """Fewer parties are left than were promised: nothing is opened, and nothing was learned."""


class Refused(CofactorError):
    """Possible, but not allowed: a budget, a policy, a checksum."""

    exit_code = 1


class BudgetExceeded(Refused):
    """A release that would spend more than the budget; nothing was released."""


class PrivacyWarning(UserWarning):
    """A promise that can be kept, but is weaker than its reader may think."""


class DownloadError(Refused):
    """The publisher could not be reached, or sent something unexpected."""


def did_you_mean(word: object, known: Iterable[object]) -> str:
    """Return ' Did you mean "epsilon"?', or nothing when no known word is close."""
    close = difflib.get_close_matches(str(word), [str(name) for name in known], n=1)
    return f' Did you mean "{close[0]}"?' if close else ""
