"""Registers as columns, of which most are surely right, and seen to be so in one pass.

Reads and writes only, each value written once: then zones are exact (`zones`). What is not right,
and what is more than that, is left to `registers`, which tells what is wrong, and by what.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from jepsen_like.checkers.operations import NEVER
from jepsen_like.checkers.zones import Accesses, Clusters, clashes
from jepsen_like.verdict import Verdict

__all__ = ["RegisterColumns", "sound", "sound_verdict"]

Mask = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RegisterColumns:
    """One row an access that says something: reads that are ok, writes that have not failed."""

    keys: Sequence[str]
    accesses: Accesses  # value -1: never written; nobody writes it
    is_write: Mask


def sound(columns: RegisterColumns) -> Mask:
    """Of each key: is every value written once, and is it linearizable?"""
    accesses, is_write = columns.accesses, columns.is_write
    clusters = Clusters.of(accesses)
    count = len(clusters.key)
    written = np.full(count, NEVER)
    written[clusters.cluster[is_write]] = accesses.call[is_write]
    writes = np.bincount(clusters.cluster[is_write], minlength=count)
    # A value that was never written is seen from the beginning on; another one after its write.
    is_wrong = (clusters.value >= 0) & ((writes != 1) | (clusters.first < written))
    is_sound = np.ones(len(columns.keys), dtype=bool)
    is_sound[clusters.key[is_wrong]] = False
    is_sound[clusters.key[clashes(clusters)[0]]] = False
    return is_sound


def sound_verdict(names: Sequence[str]) -> Verdict:
    """As `registers` tells it."""
    return Verdict.of([], {"registers": len(names), "by zones": len(names)}, objects=names)
