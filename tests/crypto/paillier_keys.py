"""Safe primes to make keys of in tests, where drawing them would take the time. Never encrypt with them."""

from collections.abc import Sequence

from gmpy2 import mpz

from cofactor.crypto.ciphers import Dealt, Integers, Part

SMALL = (mpz("0xc1d239621d0115a08e9226eba7d2f137"), mpz("0xc37cfd8c44e70ace80992a4d95f4ca33"))
OTHER_SMALL = (mpz("0xebbd203397eea04dd120871705c9a7ef"), mpz("0xf46a3d528757e7e9c2e484ea61fdb2db"))
"""256 bits: for tests that encrypt often. The arithmetic is that of larger keys."""

PAPER = (
    mpz(
        "0xf8eef73a12cf0585f8569734684ef8eb8c618f2b95eb0acc024bd9c51fa0e757"
        "4d69d3a689493ae385643e4a1f8763b3b6399b974ede1c46150e9763c2724e37"
    ),
    mpz(
        "0xf1cca5a3096de626bdeb271a45969effbfbb986bc15619fc957fef4450a09d90"
        "489e0ca1b44090e72e42a7712b3c34a14ce7adba54df2929656914cb9dab1793"
    ),
)
"""1024 bits."""

LARGE = (
    mpz(
        "0xfa6cad072de672bbc258e0ff6c3fdb84c9b3720dedee5860c78b2cef2a6a3f5a"
        "d7830ceec30247b99bc7b83023cdc3a64ea5c5ce4d406f40ce80d10b462fcfb2"
        "159ceee8886b6de7ba97b00b1671cf9aea5721ad92a723b848cf67e65999e289"
        "978269bad73704ceda507f4e31eef4b4abd7a4f56187f3545dd33bfda9f3a973"
    ),
    mpz(
        "0xd67e6c0f3542d930b4b94177284ca45963b2f205c0d3566670573047ab31fd38"
        "7e42561d8961af188370c848c14fab70714046d2fa69e265d6ec30d16bef31a5"
        "f8e87e7e9fedcf4d51ded7dcda4a6a10692e098cf5de3aedfa47ef94ec9cf5d2"
        "3808822afdf5aa129e7532e5ef45520a17cb685df07dcd1c928ec0cec609455f"
    ),
)
"""2048 bits."""


def parts_of(dealt: Dealt, total: bytes, length: int, bits: int, places: Sequence[int]) -> list[Part]:
    """Let the holders at these places open all pieces of a sum."""
    pieces = range(dealt.cipher.pieces(length, bits))
    return [Part(at, pieces, dealt.holders[at].part(total, length, bits, pieces)) for at in places]


def opened(dealt: Dealt, total: bytes, length: int, bits: int, places: Sequence[int]) -> Integers:
    """Open a sum with the holders at these places."""
    return dealt.cipher.combined(total, length, bits, parts_of(dealt, total, length, bits, places))
