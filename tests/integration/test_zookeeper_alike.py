"""The simulated ensemble against the real server: the same operations, the same answers.

Whatever was generated goes to both, to two clients each. Numbers of changes (zxids) are compared by
their order, session ids by whose they are. Skipped, and said so, where no ZooKeeper can be started.
"""

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jepsen_like.real.zookeeper import missing_reason
from tests.integration.real_zookeeper import KazooClients, started
from tests.sim.zk_cluster import ZkCluster
from wire.message import replace
from wire.zk.session import (
    Check,
    Children,
    Committed,
    Create,
    Created,
    Data,
    Delete,
    Exists,
    Found,
    GetChildren,
    GetData,
    Multi,
    Operation,
    Result,
    SessionEvent,
    SetData,
    Stat,
    Unwatch,
    Write,
    Written,
)

REASON = missing_reason()
pytestmark = [
    pytest.mark.extra,  # hundreds of conversations with a real ZooKeeper
    pytest.mark.skipif(REASON is not None, reason=REASON or ""),
    # kazoo's thread draws from the global generator, while operations are generated here.
    pytest.mark.filterwarnings("ignore:Do not use the `random` module inside strategies"),
]

Told = list[Result | SessionEvent]
ROOTS = count(1)  # every example has a place of its own

# Few places, so that operations meet; some of them twice, so that they meet there more often.
PATHS = ("/a", "/a", "/a/c", "/a/c", "/b", "/a/s-0000000000", "/a/s-0000000001")
VERSIONS = st.sampled_from((-1, -1, -1, 0, 1))
DATA = st.sampled_from((b"", b"1"))
paths = st.sampled_from(PATHS)
watches = st.sampled_from((True, True, True, False))
creates = st.one_of(
    st.builds(Create, path=paths, data=DATA, is_ephemeral=st.sampled_from((False, False, True))),
    st.builds(
        Create,
        path=st.sampled_from(("/a/s-", "/s-")),
        is_ephemeral=st.booleans(),
        is_sequential=st.just(value=True),
    ),
)
sets = st.builds(SetData, path=paths, data=DATA, version=VERSIONS)
deletes = st.builds(Delete, path=paths, version=VERSIONS)
checks = st.builds(Check, path=paths, version=VERSIONS)
writes: st.SearchStrategy[Write] = st.one_of(creates, sets, deletes, checks)
reads: st.SearchStrategy[Operation] = st.one_of(
    st.builds(GetData, path=paths, watch=watches),
    st.builds(Exists, path=paths, watch=watches),
    st.builds(GetChildren, path=st.sampled_from(("", "/a", "/a/c")), watch=watches),
    st.builds(Unwatch, path=st.sampled_from(("/a", "/a/c")), is_of_children=st.booleans()),
)
multis = st.builds(Multi, writes=st.lists(writes, min_size=1, max_size=4).map(tuple))
single = st.one_of(creates, sets, deletes)
operations = st.one_of(single, single, multis, reads, reads)
STEPS_MIN, STEPS_MAX = 12, 40  # a few operations seldom meet
EXAMPLES = 60
steps = st.lists(
    st.tuples(st.sampled_from(("a", "b")), operations), min_size=STEPS_MIN, max_size=STEPS_MAX
)


def under(root: str, operation: Operation) -> Operation:
    if isinstance(operation, Multi):
        parts = (replace(write, path=root + write.path) for write in operation.writes)
        return Multi(writes=tuple(parts))
    return replace(operation, path=root + operation.path)


@dataclass
class Both:
    """A real server with its clients, and a simulated one with its own."""

    real: KazooClients
    simulated: ZkCluster

    def begin(self) -> str:
        root = f"/{next(ROOTS)}"
        for name in ("a", "b"):
            del self.real.told[name][:]
            del self.simulated.heard[name].told[:]
        for path in ("", "/a", "/a/c"):
            self.do("a", Create(path=root + path))
        return root

    def do(self, name: str, operation: Operation) -> None:
        self.real.ask(name, operation)
        self.simulated.ask(name, operation)

    def settle(self) -> None:
        for name in ("a", "b"):
            self.real.settle(name)
        self.simulated.run_ms(20)

    def compare(self) -> None:
        real = in_order(self.real.told, {each.id: name for name, each in self.real.session.items()})
        simulated = in_order(
            {name: heard.told for name, heard in self.simulated.heard.items()},
            {heard.session.id: name for name, heard in self.simulated.heard.items()},
        )
        assert simulated == real


def in_order(told: dict[str, Told], owners: dict[int, str]) -> dict[str, list[object]]:
    """With zxids replaced by their rank, and owners by their names."""
    stats = [stat for each in told.values() for one in each for stat in stats_of(one)]
    zxids = {zxid for stat in stats for zxid in (stat.czxid, stat.mzxid, stat.pzxid)}
    rank = {zxid: number for number, zxid in enumerate(sorted(zxids))}

    def shown(stat: Stat) -> object:
        ranks = rank[stat.czxid], rank[stat.mzxid], rank[stat.pzxid]
        owner = owners.get(stat.ephemeral_owner, "")
        return ranks, owner, stat.version, stat.children_version, stat.children_count

    return {name: [comparable(one, shown) for one in each] for name, each in told.items()}


def stats_of(one: Result | SessionEvent) -> list[Stat]:
    match one:
        case Created(stat=Stat() as stat) | Written(stat=stat) | Data(stat=stat):
            return [stat]
        case Found(stat=stat) | Children(stat=stat):
            return [stat]
        case Committed(results=results):
            return [stat for each in results for stat in stats_of(each)]
        case _:
            return []


def comparable(one: Result | SessionEvent, shown: Callable[[Stat], object]) -> object:
    match one:
        case Created(path=path, stat=stat):
            return "created", path, None if stat is None else shown(stat)
        case Written(stat=stat) | Found(stat=stat):
            return type(one), shown(stat)
        case Data(data=data, stat=stat):
            return data, shown(stat)
        case Children(names=names, stat=stat):
            return names, shown(stat)
        case Committed(results=results):
            return [comparable(each, shown) for each in results]
        case _:
            return one


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Both]:
    with (
        started(tmp_path_factory.mktemp("zookeeper")) as zookeeper,
        asyncio.Runner() as runner,
    ):
        real = KazooClients(runner, zookeeper.connect, timeout_ms=10_000)
        simulated = ZkCluster(servers=1, timeout_ms=10_000)
        for name in ("a", "b"):
            real.open(name)
            simulated.client(name)
        yield Both(real, simulated)
        real.close_all()


@settings(max_examples=EXAMPLES, deadline=None)
@given(steps=steps)
def test_two_clients_in_turn_are_told_the_same(
    both: Both, steps: list[tuple[str, Operation]]
) -> None:
    root = both.begin()
    for name, operation in steps:
        both.do(name, under(root, operation))
        both.settle()
    both.compare()


@settings(max_examples=EXAMPLES, deadline=None)
@given(steps=st.lists(operations, min_size=STEPS_MIN, max_size=STEPS_MAX))
def test_pipelined_operations_are_answered_in_order_among_events(
    both: Both, steps: list[Operation]
) -> None:
    root = both.begin()
    sent = [under(root, operation) for operation in steps]
    both.real.ask("a", *sent)
    for operation in sent[:-1]:
        both.simulated.send("a", operation)
    both.simulated.ask("a", sent[-1])
    both.settle()
    both.compare()


@settings(max_examples=10, deadline=None)
@given(
    created=st.lists(st.sampled_from(("/a/d", "/a/e", "/b/c")), unique=True),
    watched=st.lists(reads, max_size=6),
)
def test_end_of_a_session_is_seen_alike(
    both: Both, created: list[str], watched: list[Operation]
) -> None:
    """The order in which ephemeral nodes go is the server's own: events are compared as a set."""
    root = both.begin()
    both.real.open("c")
    both.simulated.client("c")
    both.do("a", Create(path=root + "/b"))
    for path in created:
        both.do("c", Create(path=root + path, is_ephemeral=True))
    for read in watched:
        both.do("a", under(root, read))
    before = len(both.real.told["a"])
    both.real.close("c")
    both.simulated.clients["c"].close()
    both.settle()
    real, simulated = both.real.told["a"][before:], both.simulated.heard["a"].told[before:]
    assert sorted(map(repr, simulated)) == sorted(map(repr, real))
    for told in (both.real.told, {n: h.told for n, h in both.simulated.heard.items()}):
        del told["a"][before:]
        del told["c"][:]
    for path in ("/a", "/b"):
        both.do("a", GetChildren(path=root + path))
    both.compare()
