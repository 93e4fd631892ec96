"""The election of a controller: the broker that owns the ephemeral node /controller decides for the
cluster.

A broker that loses watches the node, and runs again when it is deleted or changed: its owner has
died or was shut down, or an administrator has deleted it or written another broker's id into it. A
node that belongs to our session already counts as won: we created it, and the answer was lost
(KAFKA-13407). If an administrator has written something else into it since, we delete it: the node
would last as long as our session, and nobody else could create it. Then all run for it, as its
deletion tells them; whose id was written is not preferred, since who creates the node leads.

The winner increments `/controller_epoch`, whose version guards its writes where a design wants
that.

Source: seed 000, D; seed 001, "controller leader election"; seed 004, "Controller".
"""

from dataclasses import dataclass

from controller.zk.zk_metadata import decoded
from quorum.zookeeper.zk_procedures import Procedure, one
from wire.zk import paths
from wire.zk.session import (
    Create,
    Created,
    Data,
    Delete,
    Exists,
    Found,
    GetData,
    Session,
    SetData,
    Written,
)
from wire.zk.znodes import ControllerOwner, decode_epoch, encode_epoch

__all__ = ["NO_CONTROLLER", "Controllership", "Lost", "Race", "run_for_controller"]

NO_CONTROLLER = -1
_ROUNDS_MAX = 100


@dataclass(slots=True, kw_only=True)
class Controllership:
    """Is this broker the controller, and since when?"""

    epoch: int
    epoch_zk_version: int  # of /controller_epoch: it moves when another takes over
    is_lost: bool = False  # a guarded write has shown that another has taken over


@dataclass(frozen=True, slots=True, kw_only=True)
class Lost:
    controller_id: int  # NO_CONTROLLER: not known


Race = Controllership | Lost


def run_for_controller(session: Session, node_id: int, now_ms: int) -> Procedure[Race]:
    """Create the node, or watch the node of another broker."""
    owner = ControllerOwner(broker_id=node_id, timestamp_ms=now_ms)
    for _ in range(_ROUNDS_MAX):
        created = yield from one(
            Create(path=paths.CONTROLLER, data=owner.encode(), is_ephemeral=True)
        )
        watched = yield from one(Exists(path=paths.CONTROLLER, watch=True))
        if isinstance(created, Created):
            return (yield from _begin_controllership())
        if not isinstance(watched, Found):
            continue  # gone again
        found = yield from one(GetData(path=paths.CONTROLLER))
        if not isinstance(found, Data):
            continue
        owned = decoded(found, ControllerOwner.decode)
        named = NO_CONTROLLER if owned is None else owned.broker_id
        if found.stat.ephemeral_owner == session.id:
            if named == node_id:
                return (yield from _begin_controllership())
            yield from one(Delete(path=paths.CONTROLLER, version=found.stat.version))
            named = NO_CONTROLLER
        return Lost(controller_id=named)
    return Lost(controller_id=NO_CONTROLLER)


def _begin_controllership() -> Procedure[Race]:
    """Increment the epoch. A broker that fails in that has been replaced as a controller."""
    for _ in range(_ROUNDS_MAX):
        found = yield from one(GetData(path=paths.CONTROLLER_EPOCH))
        if not isinstance(found, Data):
            created = yield from one(Create(path=paths.CONTROLLER_EPOCH, data=encode_epoch(1)))
            if isinstance(created, Created):
                return Controllership(epoch=1, epoch_zk_version=0)
            continue
        epoch = (decoded(found, decode_epoch) or 0) + 1
        written = yield from one(
            SetData(
                path=paths.CONTROLLER_EPOCH, data=encode_epoch(epoch), version=found.stat.version
            )
        )
        if isinstance(written, Written):
            return Controllership(epoch=epoch, epoch_zk_version=written.stat.version)
    return Lost(controller_id=NO_CONTROLLER)
