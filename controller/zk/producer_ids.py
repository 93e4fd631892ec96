"""Blocks of producer ids: the last one given out lies in a node of its own.

Source: KIP-98; Kafka's ZkProducerIdManager.
"""

from controller.metadata.znode_reading import decoded
from quorum.zookeeper.zk_procedures import Procedure, one
from wire.errors import ErrorCode
from wire.messages.producing import AllocateProducerIdsRequest, AllocateProducerIdsResponse
from wire.zk import paths
from wire.zk.session import Create, Created, Data, GetData, SetData, Written
from wire.zk.znodes import ProducerIdBlock

__all__ = ["allocate_producer_ids"]

_BLOCK = 1000
_ROUNDS_MAX = 100


def allocate_producer_ids(
    request: AllocateProducerIdsRequest,
) -> Procedure[AllocateProducerIdsResponse]:
    """The next block, written before it is given out. Another controller may be at it too."""
    path = paths.LATEST_PRODUCER_ID_BLOCK
    for _ in range(_ROUNDS_MAX):
        found = yield from one(GetData(path=path))
        last = decoded(found, ProducerIdBlock.decode)
        first = 0 if last is None else last.last + 1
        block = ProducerIdBlock(
            broker_id=request.broker_id, first=first, last=first + _BLOCK - 1
        ).encode()
        if isinstance(found, Data):
            written = yield from one(SetData(path=path, data=block, version=found.stat.version))
        else:
            written = yield from one(Create(path=path, data=block))
        if isinstance(written, Written | Created):
            return AllocateProducerIdsResponse(producer_id_start=first, producer_id_len=_BLOCK)
    return AllocateProducerIdsResponse(error_code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
