"""What a design is at an inter-broker protocol version."""

import pytest

from wire.zk.designs import DESIGNS, ZK_KIP497, IsrWriter, at_version


@pytest.mark.parametrize(
    ("version", "writer"),
    [
        ("0.10.2", IsrWriter.LEADER_NOTIFYING),
        ("2.6", IsrWriter.LEADER_NOTIFYING),
        ("2.7-IV1", IsrWriter.LEADER_NOTIFYING),
        ("2.7-IV2", IsrWriter.CONTROLLER),
        ("2.7", IsrWriter.CONTROLLER),
        ("3.9.1", IsrWriter.CONTROLLER),
    ],
)
def test_alter_isr_is_gated_by_the_inter_broker_protocol_version(
    version: str, writer: IsrWriter
) -> None:
    assert at_version(ZK_KIP497, version).isr_writer is writer


def test_version_changes_no_design_that_has_no_alter_isr() -> None:
    others = [design for design in DESIGNS.values() if design is not ZK_KIP497]
    assert [at_version(design, "0.8.2") for design in others] == others


@pytest.mark.parametrize("version", ["", "3", "new"])
def test_what_is_no_version_is_refused(version: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        at_version(ZK_KIP497, version)
