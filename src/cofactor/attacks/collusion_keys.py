"""Uploads that are hidden by keys, opened one by one by those who hold enough of them.

An honest decrypter opens sums only, and checks whose. One that colludes gives its part in opening whatever
the coordinator likes: a single party's upload, as it was captured.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cofactor.config import from_table
from cofactor.crypto import vector_shares
from cofactor.crypto.ciphers import Cipher, Part
from cofactor.crypto.hiding import HolderOfKey, HolderOfShares
from cofactor.crypto.opening_wire import Upload, read_request, read_upload
from cofactor.errors import ConfigError, RunError
from cofactor.federation.door import COORDINATOR
from cofactor.federation.opening import Key
from cofactor.federation.summing import Form
from cofactor.federation.view import Seen, View
from cofactor.recipes.opened_sums import EncryptedSum, SharedSum

Integers = NDArray[np.int64]

OPENED_ALONE = "opened by keys of those who collude"
"""What stands in place of protection beside an upload that was opened by itself."""


def opened_uploads(view: View, *, fewer: bool = False) -> tuple[Seen, ...]:
    """Open every party's upload by itself, from the bytes that the coordinator was sent and `view.keys`.

    With fewer keys than a quorum the arithmetic does not come out: TooFew says so. Where numbers lie in
    shares, `fewer` goes on with those that there are, as if they were enough; what comes of it is chance.
    """
    if not view.keys:
        raise ConfigError(
            f"{' and '.join(view.roles)} hold no keys of sums. Let a decrypter collude, in a federation that "
            "adds up by EncryptedSum or SharedSum, and capture what it sees in the same process."
        )
    return tuple(
        _opened(view, begun, fewer=fewer) for begun in view.messages("SumBegun", receiver=COORDINATOR)
    )


def with_opened(view: View, *, fewer: bool = False) -> View:
    """Return the view with all uploads that keys open in it, as if they had been sent in the clear."""
    return replace(view, seen=(*view.seen, *opened_uploads(view, fewer=fewer)))


def quorum_of(view: View) -> int | None:
    """Return how many decrypters must come together; None where no keys hide answers."""
    aggregate = view.recipe.get("aggregate")
    if not isinstance(aggregate, Mapping) or aggregate.get("kind") not in ("EncryptedSum", "SharedSum"):
        return None
    found: EncryptedSum | SharedSum = from_table(EncryptedSum | SharedSum, aggregate, "aggregate")
    return found.quorum(len(view.parties))


def _opened(view: View, begun: Seen, *, fewer: bool) -> Seen:
    form = Form.read(str(begun.plain["form"]))
    upload = read_upload(np.asarray(begun.arrays["data"]).tobytes())
    openers = [key.opener for key in view.keys.values()]
    if all(isinstance(opener, HolderOfShares) for opener in openers):
        values = _from_shares(view, begun.round, upload, form, fewer=fewer)
    elif all(isinstance(opener, HolderOfKey) for opener in openers):
        values = _decrypted(view.keys, upload, form)
    else:
        raise RunError("the keys of those who collude are of different kinds. Look at one run at a time.")
    return Seen(
        round=begun.round,
        sender=begun.sender,
        receiver=COORDINATOR,
        kind=form.kind,
        protection=OPENED_ALONE,
        arrays=form.split(values),
    )


def _decrypted(keys: Mapping[str, Key], upload: Upload, form: Form) -> Integers:
    """Decrypt the one box that an upload has, with the parts of all who collude."""
    box, cipher = upload.boxes[0], _cipher(next(iter(keys.values())))
    pieces = range(cipher.pieces(form.length, form.bits))
    parts = [
        Part(key.number, pieces, key.opener.part(box, form.length, form.bits, pieces))
        for key in keys.values()
    ]
    return cipher.combined(box, form.length, form.bits, parts)


def _cipher(key: Key) -> Cipher:
    """Return the public half of a key, which whoever holds it has as well."""
    opener: Any = key.opener
    found: Cipher = opener.cipher
    return found


def _from_shares(view: View, round: int, upload: Upload, form: Form, *, fewer: bool) -> Integers:
    """Open the shares that were sealed for those who collude, and put them together."""
    digest = next(_digests(view, round), None)
    quorum = quorum_of(view)
    if digest is None or quorum is None:
        raise RunError(f"what decrypters were asked in round {round} was not captured. Capture all of it.")
    bound_to = digest + upload.place.to_bytes(4, "little")
    shares = {
        key.number: vector_shares.from_bytes(
            key.opener.total([(upload.boxes[key.number], bound_to)], form.length, form.bits), form.length
        )
        for key in view.keys.values()
    }
    return vector_shares.combined(shares, threshold=min(quorum, len(shares)) if fewer else quorum)


def _digests(view: View, round: int) -> Iterator[bytes]:
    """Yield what all boxes of a round are bound to: decrypters are told it when they are asked."""
    for step in view.messages("SumStep", round=round, sender=COORDINATOR):
        yield read_request(np.asarray(step.arrays["data"]).tobytes()).digest
