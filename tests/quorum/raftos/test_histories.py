"""Three controllers on a raftos that keeps Raft's promises: one log, as its leaders had said.

Elections come at any time, and each may drop what was not committed; nodes learn of commits late.
"""

from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from quorum.core.effects import Append, LogState, Stop, Stored
from quorum.core.storage import METADATA_LOG
from quorum.raft.roles import Leader
from quorum.raftos.commands import PIECE_BYTES_MAX, Command
from quorum.raftos.raftos_effects import Committed, News, RaftosEvent, RaftosRequest, TermAndLeader
from quorum.raftos.raftos_node import RaftosNode
from tests.quorum.replicas import config
from wire.batch import data_batch, headers, records_of

IDS = (1, 2, 3)
STEPS = st.lists(st.sampled_from(["elect", "append", "append", "large", "commit", "hear"]))


class Ideal:
    """Raft's log as raftos would have it, and the three nodes above."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.nodes = {
            each: RaftosNode(config(each), LogState(log=METADATA_LOG), Random(each), 0)
            for each in IDS
        }
        self.logs = dict.fromkeys(IDS, b"")
        self.heard = dict.fromkeys(IDS, 0)
        self.entries: list[tuple[int, Command]] = []
        self.committed = 0
        self.term = 0
        self.leader = 1
        self.promised: dict[bytes, int] = {}

    def elect(self) -> None:
        """Whoever wins has all that is committed, and maybe some of the rest."""
        kept = self.random.randint(self.committed, len(self.entries))
        del self.entries[kept:]
        self.term += 1
        self.leader = self.random.choice(IDS)
        for each in IDS:
            self.tell(each, TermAndLeader(term=self.term, leader_id=self.leader))

    def append(self, size: int = 1) -> None:
        node = self.nodes[self.leader]
        if isinstance(node.role, Leader):
            value = b"%06d" % len(self.promised) + bytes(size)
            self.promised[value] = node.append(data_batch([value], timestamp_ms=0), 0)
            self.settle(self.leader)

    def commit(self) -> None:
        """Entries of earlier terms are committed with one of the leader's own."""
        own = [i for i, (term, _) in enumerate(self.entries) if term == self.term]
        if own and own[-1] >= self.committed:
            self.committed = self.random.choice([i for i in own if i >= self.committed]) + 1
            self.hear(self.leader)

    def hear(self, node_id: int) -> None:
        while self.heard[node_id] < self.committed:
            term, command = self.entries[self.heard[node_id]]
            self.heard[node_id] += 1
            self.tell(node_id, Committed(term=term, command=command))

    def tell(self, node_id: int, news: News) -> None:
        self.nodes[node_id].receive(RaftosEvent(news=news), 0)
        self.settle(node_id)

    def settle(self, node_id: int) -> None:
        node = self.nodes[node_id]
        while effects := node.take_effects():
            for effect in effects:
                assert not isinstance(effect, Stop), effect.reason
                if isinstance(effect, Append):
                    self.logs[node_id] += effect.records
                    node.receive(Stored(log=METADATA_LOG, token=effect.token), 0)
                if isinstance(effect, RaftosRequest) and effect.term == self.term:
                    assert effect.command is not None
                    self.entries.append((self.term, effect.command))

    def found(self) -> dict[bytes, int]:
        """The offset of every value."""
        return {
            record.value or b"": header.base_offset + place
            for position, header in headers(self.logs[1])
            if not header.attributes & 0x20
            for place, record in enumerate(
                records_of(self.logs[1][position : position + header.size_bytes])
            )
        }


@settings(max_examples=60)
@given(steps=STEPS, seed=st.integers(0, 1 << 20))
def test_all_logs_are_one_and_hold_what_was_promised_where_it_was(
    steps: list[str], seed: int
) -> None:
    ideal = Ideal(seed)
    for step in ["elect", "commit", *steps, "commit"]:
        match step:
            case "elect":
                ideal.elect()
            case "append":
                ideal.append()
            case "large":
                ideal.append(size=2 * PIECE_BYTES_MAX)
            case "commit":
                ideal.commit()
            case _:
                ideal.hear(ideal.random.choice(IDS))
    for each in IDS:
        ideal.hear(each)
    assert ideal.logs[1] == ideal.logs[2] == ideal.logs[3]
    found = ideal.found()
    assert found == {value: ideal.promised[value] for value in found}
    offsets = [header.base_offset for _, header in headers(ideal.logs[1])]
    assert offsets == sorted(set(offsets))
