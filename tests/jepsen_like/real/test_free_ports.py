"""Ports are drawn so that clusters which start at the same time do not meet."""

import socket
from itertools import islice

import pytest

from jepsen_like.real import free_ports as module
from jepsen_like.real.free_ports import _Blocks, free_ports
from jepsen_like.real.layout import HOST, ClusterError


def test_two_that_draw_at_once_get_different_ports() -> None:
    """What one has drawn nobody listens on yet, so that only its block keeps the other away."""
    one, other = _Blocks(), _Blocks()
    drawn = [blocks.draw() for _ in range(60) for blocks in (one, other)]
    assert len(set(drawn)) == len(drawn)


def test_port_on_which_somebody_listens_is_passed_over() -> None:
    blocks = _Blocks()
    first = blocks.draw()
    with socket.create_server((HOST, first + 1)):
        assert blocks.draw() == first + 2


def test_given_back_blocks_are_not_drawn_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """A cluster that was stopped may be started again on its ports."""
    monkeypatch.setattr(module, "_HELD_BLOCKS", 1)
    blocks = _Blocks()
    drawn = [blocks.draw() for _ in range(120)]
    assert len(set(drawn)) == len(drawn)


def test_no_block_left_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    port = next(free_ports())
    first = port - port % module._BLOCKS.step  # of a block that this process holds
    monkeypatch.setattr(module, "_BLOCKS", range(first, first + 50, 50))
    with pytest.raises(ClusterError, match=f"every port from {first} to {first + 50} is taken"):
        _Blocks().draw()


def test_first_port_and_those_above_it() -> None:
    port = next(free_ports())
    first, second = islice(free_ports(port), 2)
    assert first == port < second


def test_ports_end() -> None:
    """The range of ports has an end; it is told as an error of the cluster's."""
    with pytest.raises(ClusterError, match="no port above"):
        list(free_ports(65_534))
