"""`Guarantee`: what may be said about privacy, with everything that it rests on, in words one can sign."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from cofactor.privacy import words
from cofactor.privacy.budget import Adjacency, Budget, Unit, odds
from cofactor.privacy.entries import Period
from cofactor.privacy.events import Event
from cofactor.privacy.mechanisms import PoissonBinomial, SampledGaussian
from cofactor.privacy.words import Assumption

