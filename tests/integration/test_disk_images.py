"""Disks of nodes that can be broken, on the real kernel. Needs root."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from jepsen_like.real.injection.filesystems import DiskImage, why_no_disks
from jepsen_like.real.layout import NodeLayout

pytestmark = [pytest.mark.extra, pytest.mark.skipif(bool(why_no_disks()), reason=why_no_disks())]


@pytest.fixture
def node(tmp_path: Path) -> NodeLayout:
    return NodeLayout(
        id=1,
        roles=("broker",),
        host="127.0.0.1",
        port=1,
        controller_port=None,
        http_port=2,
        dir=str(tmp_path / "1"),
    )


@pytest.fixture
def disk(node: NodeLayout) -> Iterator[DiskImage]:
    made = DiskImage(node)
    made.make()
    yield made
    made.unmount()


def test_room_that_was_made_stays_when_the_power_fails(disk: DiskImage, node: NodeLayout) -> None:
    assert disk.fill() > 1 << 20
    with pytest.raises(OSError, match="No space left"):
        (node.data / "x").write_bytes(bytes(1 << 20))
    disk.free()
    disk.lose_power()
    disk.remount()
    (node.data / "x").write_bytes(bytes(1 << 20))
