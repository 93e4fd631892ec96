"""Planted bugs of the judges of histories: no run of a system finds them, only their own tests."""

import numpy as np

from jepsen_like.checkers import log_columns
from jepsen_like.checkers.pairing import Column, Mask
from jepsen_like.planted.planting import plant_in


@plant_in("checker", log_columns, "has_passed")
def passes_only_what_lies_before(read: Column, offset: Column) -> Mask:
    """Breaks: who read another value at an offset has passed it, though it read none beyond
    (lost-write)."""
    passed: Mask = np.greater(read, offset)
    return passed
