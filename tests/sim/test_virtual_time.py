"""Draws of the simulator that take a shorter way than module random's."""

from random import Random

import pytest

from jepsen_like.sim.time.virtual_time import below


@pytest.mark.parametrize("bound", [1, 2, 3, 100, 1000, 1024, 1025])
def test_below_draws_what_randrange_draws(bound: int) -> None:
    ours, python = Random("seed"), Random("seed")
    assert [below(ours, bound) for _ in range(200)] == [python.randrange(bound) for _ in range(200)]
    assert ours.getstate() == python.getstate()
