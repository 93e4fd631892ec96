"""An administrator who changes the voters of a simulated quorum, by the requests of Kafka's tool.

Removes voters, the leader more often than others, and those whose disk is lost first; adds nodes
that do not vote. Asks whom it takes for the leader, and sometimes another. Its requests are lost,
delayed and duplicated as all others are, and it does not mind an error: it tries something else.
"""

from random import Random

from jepsen_like.sim.assemblies.quorum.quorum_view import key_of, names, written
from jepsen_like.sim.assemblies.quorum.simulated_quorum import (
    CLUSTER_ID,
    SimulatedQuorum,
    listener_of,
)
from jepsen_like.sim.logs.logtree import Voters
from jepsen_like.sim.world.host import Host
from jepsen_like.sim.world.network import Message
from quorum.core.types import ReplicaKey
from wire.errors import ErrorCode
from wire.messages.endpoints import Listener
from wire.messages.voters import (
    AddRaftVoterRequest,
    AddRaftVoterResponse,
    RemoveRaftVoterRequest,
    RemoveRaftVoterResponse,
)

__all__ = ["Administrator"]

_ADDRESS = 0  # in the network
_VOTERS_MAX = 5
_HASTE = 0.1  # chance to ask at a moment that is known to be a bad one
_ELSEWHERE = 0.1  # chance to ask a node that does not lead


class Administrator:
    def __init__(self, quorum: SimulatedQuorum) -> None:
        self._world = quorum.world
        self._view = quorum.invariants.view
        self._timeout_ms = quorum.options.request_timeout_ms
        self._random: Random = self._world.fork("administrator")
        # Whom it has ever asked to add or to remove: a request that is late counts, too.
        self.adding: dict[ReplicaKey, None] = {}
        self.removing: set[ReplicaKey] = set()
        self._asked: set[int] = set()  # by correlation
        self._answer_by_us = 0  # that to the last request
        self._world.delivers_elsewhere[_ADDRESS] = self.deliver

    def change_voters(self, leader: Host | None) -> None:
        """Ask for one change, by what is committed."""
        if (
            leader is not None
            and not self._is_good_moment(leader)
            and self._random.random() >= _HASTE
        ):
            return
        up = [host for host in self._view.hosts.values() if host.is_up]
        if leader is None or not up:
            return
        to = self._random.choice(up) if self._random.random() < _ELSEWHERE else leader
        voters, lost, others = self._candidates()
        if lost and self._random.random() < 0.7:
            self.remove(to, self._random.choice(lost))
        elif others and (len(voters) < 2 or self._random.random() < 1 - len(voters) / _VOTERS_MAX):
            self.add(to, self._random.choice(others))
        elif len(voters) > 1:
            victims = [*voters, *(voter for voter in voters if names(voter, key_of(leader)))]
            victim = self._random.choice(victims)
            if self._may_remove(victim, to):
                self.remove(to, victim)

    def repair(self, leader: Host) -> None:
        """Ask for a change that nothing forbids: of a voter without its disk, if there is one."""
        voters, lost, others = self._candidates()
        if lost:
            self.remove(leader, lost[0])
        elif others:
            self.add(leader, others[0])
        else:
            self.remove(leader, self._random.choice(voters))

    def _candidates(self) -> tuple[Voters, list[ReplicaKey], list[Host]]:
        """The committed voters, those of them without their disks, and who might be added."""
        voters = self._view.committed_voters
        voting = [host.node_id for host in self._view.present(voters)]
        lost = [voter for voter in voters if voter.id not in voting]
        others = [h for h in self._view.hosts.values() if h.is_up and not self._is_named(h)]
        return voters, lost, others

    def _is_good_moment(self, leader: Host) -> bool:
        """Nothing is under way, and the leader has committed something in its epoch."""
        entries = self._view.history.entries
        last = written(leader).last
        is_settled = bool(entries) and last is not None and entries[-1].epoch == last.epoch
        is_waiting = self._world.now_us < self._answer_by_us
        return is_settled and not is_waiting

    def _may_remove(self, victim: ReplicaKey, to: Host) -> bool:
        """Not who is needed, since others have lost their disks, or may go by earlier requests.

        When the request arrives, what `to` has written by now may have been committed.
        """
        for voters in (self._view.committed_voters, self._view.voters_of(to)):
            left = tuple(voter for voter in voters if voter != victim)
            fewest = self._view.without(left, self.removing)
            if not fewest or min(map(self._view.spare, (left, fewest))) < 0:
                return False
        return True

    def _is_named(self, host: Host) -> bool:
        return any(names(voter, key_of(host)) for voter in self._view.committed_voters)

    def add(self, to: Host, host: Host) -> None:
        self.adding[key_of(host)] = None
        listener = listener_of(host.node_id)
        self._ask(
            to,
            AddRaftVoterRequest(
                cluster_id=CLUSTER_ID,
                timeout_ms=self._timeout_ms,
                voter_id=host.node_id,
                voter_directory_id=host.directory_id,
                listeners=(Listener(name=listener.name, host=listener.host, port=listener.port),),
            ),
        )

    def remove(self, to: Host, voter: ReplicaKey) -> None:
        self.removing.add(voter)
        body = RemoveRaftVoterRequest(
            cluster_id=CLUSTER_ID, voter_id=voter.id, voter_directory_id=voter.directory_id
        )
        self._ask(to, body)

    def _ask(self, to: Host, body: object) -> None:
        correlation = self._world.sequence()
        self._asked.add(correlation)
        self._answer_by_us = self._world.now_us + self._timeout_ms * 1000
        self._world.network.send(
            Message(
                source=_ADDRESS,
                target=to.node_id,
                channel="administrator",
                correlation=correlation,
                is_request=True,
                body=body,
            )
        )

    def deliver(self, message: Message) -> None:
        """An answer; what has one is done with."""
        if message.correlation not in self._asked:
            return
        self._asked.remove(message.correlation)
        self._answer_by_us = 0
        match message.body:
            case AddRaftVoterResponse(error_code=ErrorCode.NONE):
                self._world.counts.fired("voter_added")
            case RemoveRaftVoterResponse(error_code=ErrorCode.NONE):
                self._world.counts.fired("voter_removed")
            case _:
                self._world.counts.fired("change_refused")
