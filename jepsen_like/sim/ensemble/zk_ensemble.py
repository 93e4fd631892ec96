"""A ZooKeeper ensemble on virtual time: its leader, its order of transactions and its sessions.

Every server has a copy of the tree and applies the one log in its order, each at its own time: a
client of a server that lags reads what was. The leader orders writes and keeps the sessions. A
session lives as long as its client is heard; silence is counted from the last of its pings, and
judged at the leader's ticks. A new leader gives every session its whole time again. What a leader
has proposed and not committed when it dies may be in the log all the same.

Nothing is random but what is drawn from the world's own stream. Faults are called from outside:
`disconnect`, `cut`, `kill`, `expire` and the rest.

Source: ZooKeeper's Leader, SessionTrackerImpl and Zab, as far as a client can tell.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from jepsen_like.sim.ensemble.zk_server import (
    Change,
    CloseSession,
    OpenSession,
    Server,
    Transaction,
)
from jepsen_like.sim.ensemble.zk_tree import Tree
from jepsen_like.sim.time.virtual_time import VirtualTime
from wire.zk.session import Result

__all__ = ["Ensemble"]


_TICK_US = 100_000
_TIMEOUT_MS_MIN = 200
_TIMEOUT_MS_MAX = 60_000
_ELECTION_US_MIN = 200_000
_ELECTION_US_MAX = 500_000
# One way, between any two; a mean of an exponential distribution comes on top.
_DELAY_US_MIN = 100
_DELAY_US_MEAN = 300


@dataclass(slots=True)
class _Session:
    timeout_ms: int
    is_silent: bool = False
    silences: int = 0  # how often it began: a judgement is for one of them


class Ensemble:
    def __init__(self, world: VirtualTime, *, servers: int = 3) -> None:
        self.world = world
        self.servers = {each: Server(each, self) for each in range(1, servers + 1)}
        self.leader_id: int | None = 1
        self._furthest = self.servers[1]  # the first that had applied as much as it has
        self.traffic: Counter[str] = Counter()  # requests and events by kind, since the beginning
        self._random = world.fork("zookeeper")
        self._log: list[Transaction] = []
        self._proposed: list[Transaction] = []
        self._epoch = 0  # numbers the leaders
        self._counter = 0
        self._due_us = 0  # when the last proposal will be committed
        self._sessions: dict[int, _Session] = {}
        self._sessions_opened = 0

    # --- for whoever looks on -----------------------------------------------------------

    @property
    def tree(self) -> Tree:
        """What has been committed, as the server has it that has applied most."""
        return self._furthest.tree

    @property
    def applied(self) -> int:
        """How many transactions `tree` holds. The last committed ones may still be missing."""
        return self._furthest.applied

    def data(self, path: str) -> bytes | None:
        """The data of a node in the tree; None if it is not there."""
        return self.tree.data(path)

    @property
    def committed(self) -> int:
        """How many transactions."""
        return len(self._log)

    @property
    def watch_count(self) -> int:
        return sum(server.watch_count for server in self.servers.values())

    @property
    def session_ids(self) -> tuple[int, ...]:
        return tuple(self._sessions)

    # --- faults -------------------------------------------------------------------------

    def kill(self, server_id: int) -> None:
        """A server's process ends. It keeps its log and its tree."""
        server = self.servers[server_id]
        assert server.is_up, server_id
        server.is_up = False
        server.hang_up_all()
        if server_id == self.leader_id or not self._is_quorum_up():
            self._lose_leader()

    def restart(self, server_id: int) -> None:
        server = self.servers[server_id]
        assert not server.is_up, server_id
        server.is_up = True
        server.due_us = 0
        if self.leader_id is not None:
            self._inform(server)
        elif self._is_quorum_up():
            self._begin_election()

    def expire(self, session_id: int) -> None:
        """End a session, as an administrator can who knows its password."""
        if session_id in self._sessions and self.leader_id is not None:
            self.close(session_id, server_id=self.leader_id, answer=lambda _result: None)

    def hang_up(self, session_id: int) -> None:
        """Reset the connection of a session."""
        for server in self.servers.values():
            server.hang_up_session(session_id)

    # --- sessions -----------------------------------------------------------------------

    def draw_us(self) -> int:
        """A way through the network."""
        return _DELAY_US_MIN + int(self._random.expovariate(1 / _DELAY_US_MEAN))

    def serves(self, server_id: int, zxid_seen: int) -> bool:
        """Would it take a client that has seen that much?"""
        server = self.servers[server_id]
        return server.is_up and self.leader_id is not None and server.zxid >= zxid_seen

    def open(self, timeout_ms: int, *, server_id: int, answer: Callable[[int, int], None]) -> None:
        """Begin a session; `answer` gets its id and the time-out that it is granted."""
        granted_ms = max(_TIMEOUT_MS_MIN, min(_TIMEOUT_MS_MAX, timeout_ms))
        self._sessions_opened += 1
        session_id = (server_id << 56) + self._sessions_opened

        def opened(_result: Result | None) -> None:
            answer(session_id, granted_ms)

        change = OpenSession(granted_ms)
        self.propose(change, session_id=session_id, server_id=server_id, answer=opened)

    def resume(self, session_id: int) -> int:
        """The time-out of a session that is there; 0 if it has ended."""
        session = self._sessions.get(session_id)
        return 0 if session is None else session.timeout_ms

    def close(
        self, session_id: int, *, server_id: int, answer: Callable[[Result | None], None]
    ) -> None:
        self.propose(CloseSession(), session_id=session_id, server_id=server_id, answer=answer)

    def heard(self, session_id: int) -> None:
        """Its client can be heard, from now on."""
        session = self._sessions.get(session_id)
        if session is not None:
            session.is_silent = False

    def detached(self, session_id: int) -> None:
        """Its client cannot be heard any longer. Its last ping was less than a third ago."""
        session = self._sessions.get(session_id)
        if session is not None and not session.is_silent:
            ago_us = self._random.randrange(session.timeout_ms * 1000 // 3)
            self._begin_silence(session_id, session, ago_us)

    def _begin_silence(self, session_id: int, session: _Session, ago_us: int) -> None:
        session.is_silent = True
        session.silences += 1
        due_us = self.world.now_us - ago_us + session.timeout_ms * 1000
        due_us = -(-due_us // _TICK_US) * _TICK_US
        judge = partial(self._judge, session_id, session.silences)
        self.world.at(max(self.world.now_us, due_us), judge)

    def _judge(self, session_id: int, silence: int) -> None:
        session = self._sessions.get(session_id)
        if session is not None and session.is_silent and session.silences == silence:
            self.expire(session_id)

    # --- the log ------------------------------------------------------------------------

    def propose(
        self,
        change: Change,
        *,
        session_id: int,
        server_id: int,
        answer: Callable[[Result | None], None],
    ) -> None:
        """Sent to the leader. Without one it is lost, with the connection that it came on."""
        if self.leader_id is None:
            return
        self._counter += 1
        transaction = Transaction(
            zxid=(self._epoch << 32) + self._counter,
            change=change,
            session_id=session_id,
            server_id=server_id,
            answer=answer,
        )
        self._proposed.append(transaction)
        way_us = 0 if server_id == self.leader_id else self.draw_us()
        self._due_us = max(self._due_us, self.world.now_us + way_us + 2 * self.draw_us())
        self.world.at(self._due_us, partial(self._commit, transaction))

    def _commit(self, transaction: Transaction) -> None:
        if not self._proposed or self._proposed[0] is not transaction:
            return  # its leader is gone, and it with it
        self._proposed.pop(0)
        self._append(transaction)
        for server in self.servers.values():
            if server.is_up:
                self._inform(server)

    def _append(self, transaction: Transaction) -> None:
        self._log.append(transaction)
        session_id = transaction.session_id
        match transaction.change:
            case OpenSession(timeout_ms):
                self._sessions[session_id] = _Session(timeout_ms)
                self._begin_silence(session_id, self._sessions[session_id], 0)
            case CloseSession():
                self._sessions.pop(session_id, None)

    def _inform(self, server: Server) -> None:
        """Let a server apply all that is committed by now, when it has heard of it."""
        way_us = 0 if server.id == self.leader_id else self.draw_us() + server.lag_us
        server.due_us = max(server.due_us, self.world.now_us + way_us)
        self.world.at(server.due_us, partial(self._catch_up, server, len(self._log)))

    def _catch_up(self, server: Server, count: int) -> None:
        while server.is_up and server.applied < count:
            server.apply(self._log[server.applied])
            if server.applied > self._furthest.applied:
                self._furthest = server

    # --- who leads ----------------------------------------------------------------------

    def _is_quorum_up(self) -> bool:
        return 2 * sum(server.is_up for server in self.servers.values()) > len(self.servers)

    def _lose_leader(self) -> None:
        """Some of what was proposed had reached a majority, and will be found there."""
        if self.leader_id is None:
            return
        self.leader_id = None
        kept = self._random.randint(0, len(self._proposed))
        for transaction in self._proposed[:kept]:
            self._append(transaction)
        self._proposed.clear()
        for server in self.servers.values():
            server.hang_up_all()
        if self._is_quorum_up():
            self._begin_election()

    def _begin_election(self) -> None:
        self._epoch += 1
        takes_us = self._random.randint(_ELECTION_US_MIN, _ELECTION_US_MAX)
        self.world.after(takes_us, partial(self._elect, self._epoch))

    def _elect(self, epoch: int) -> None:
        if epoch != self._epoch or self.leader_id is not None or not self._is_quorum_up():
            return
        up = [server for server in self.servers.values() if server.is_up]
        leader = max(up, key=lambda server: (server.applied, server.id))
        self.leader_id = leader.id
        self._counter = 0
        for server in up:
            self._catch_up(server, len(self._log))
        for session_id, session in self._sessions.items():
            self._begin_silence(session_id, session, 0)

    def count(self, what: object) -> None:
        self.traffic[type(what).__name__] += 1
