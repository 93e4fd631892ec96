"""ElectLeaders in ZooKeeper mode: written to /admin/preferred_replica_election, or left to leaders.

The rules of both modes say which partitions need an election and could have one. A controller hears
of these by its watch, as of an administrator's own; where there is none, the leader of each sees by
itself that its preferred replica is in sync, and gives way. So the answer leaves before the leaders
have moved. The documents have no way to ask for an unclean election.

Source: seed 001, "preferred replica leader election"; seed 002, checkLoadBalancing.
"""

from controller import refusals
from controller.config import ControllerConfig
from controller.decisions.elections import decide_elect_leaders
from controller.metadata.image import MetadataImage
from controller.zk.asked_nodes import readable, write_over
from quorum.zookeeper.zk_procedures import Procedure
from wire.errors import ErrorCode
from wire.messages.partitions import ElectLeadersRequest, ElectLeadersResponse
from wire.zk import paths
from wire.zk.designs import Design
from wire.zk.znodes import PartitionList

__all__ = ["elect_leaders"]

_PREFERRED = 0


def elect_leaders(
    design: Design, image: MetadataImage, request: ElectLeadersRequest, config: ControllerConfig
) -> Procedure[ElectLeadersResponse]:
    if request.election_type != _PREFERRED:
        message = "Only the preferred leader can be asked for in ZooKeeper mode."
        return refusals.elect_leaders(request, ErrorCode.INVALID_REQUEST, message)
    response = decide_elect_leaders(image, request, config).response
    wanted = [
        (result.topic, each.partition_id)
        for result in response.replica_election_results
        for each in result.partition_result
        if each.error_code is ErrorCode.NONE
    ]
    if wanted and design.has_controller:
        yield from _ask(wanted)
    return response


def _ask(wanted: list[tuple[str, int]]) -> Procedure[bool]:
    """Beside those that were asked for before and that the controller has not seen yet."""

    def after(data: bytes | None) -> bytes:
        listed = readable(data, PartitionList.decode)
        before = () if listed is None else listed.partitions
        return PartitionList(partitions=tuple(dict.fromkeys((*before, *wanted)))).encode()

    return (yield from write_over(paths.PREFERRED_REPLICA_ELECTION, after))
