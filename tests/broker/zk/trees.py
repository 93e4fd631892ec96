"""A tree of znodes without clients or time, in which procedures run to their end."""

from typing import TypeVar

from jepsen_like.sim.ensemble.zk_tree import Tree
from quorum.zookeeper.zk_procedures import Procedure
from wire.zk import paths
from wire.zk.session import Create, Exists, GetChildren, GetData, Operation, Result, Unwatch

__all__ = ["ZooKeeper"]

T = TypeVar("T")


class ZooKeeper:
    def __init__(self) -> None:
        self.tree = Tree()
        self.zxid = 0
        for path in ("/brokers", paths.STATE_QUEUES, paths.TOPICS, paths.BROKER_IDS):
            self.do(Create(path=path))

    def do(self, operation: Operation) -> Result:
        if isinstance(operation, Exists | GetData | GetChildren):
            return self.tree.read(operation)
        assert not isinstance(operation, Unwatch), "nobody watches"
        self.zxid += 1
        return self.tree.apply(operation, zxid=self.zxid, session_id=1).result

    def run(self, procedure: Procedure[T]) -> T:
        results: tuple[Result, ...] | None = None
        while True:
            try:
                asked = next(procedure) if results is None else procedure.send(results)
            except StopIteration as end:
                return end.value  # type: ignore[no-any-return]
            results = tuple(self.do(operation) for operation in asked)
