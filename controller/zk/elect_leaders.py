"""ElectLeaders in ZooKeeper mode: written to /admin/preferred_replica_election.

The rules of both modes say which partitions need an election and could have one; the controller
hears of these by its watch, as of an administrator's own. So the answer leaves before the leaders
have moved. The documents have no node for an unclean election.

Source: seed 001, "preferred replica leader election".
"""

from controller import refusals
from controller.config import ControllerConfig
from controller.decisions.elections import decide_elect_leaders
from controller.metadata.image import MetadataImage
from controller.metadata.znode_reading import decoded
from quorum.zk_procedures import Procedure, one
from wire.errors import ErrorCode
from wire.messages.elect_leaders import ElectLeadersRequest, ElectLeadersResponse
from wire.zk import paths
from wire.zk.session import Create, GetData, SetData
from wire.zk.znodes import PartitionList

__all__ = ["elect_leaders"]

_PREFERRED = 0


def elect_leaders(
    image: MetadataImage, request: ElectLeadersRequest, config: ControllerConfig
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
    if wanted:
        yield from _ask(wanted)
    return response


def _ask(wanted: list[tuple[str, int]]) -> Procedure[None]:
    """Beside those that were asked for before and that the controller has not seen yet."""
    path = paths.PREFERRED_REPLICA_ELECTION
    listed = decoded((yield from one(GetData(path=path))), PartitionList.decode)
    before = () if listed is None else listed.partitions
    data = PartitionList(partitions=tuple(dict.fromkeys((*before, *wanted)))).encode()
    yield from one(Create(path=path))
    yield from one(SetData(path=path, data=data))
