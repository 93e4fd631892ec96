"""Tells what happens in a quorum: roles, votes, what is stored where, what is committed.

It looks on as a tracer does, and tells what has changed at a node whenever the node has had a turn.
A record is told when it is durable, since only then does it count (`docs/architecture.md`); on a
disk that a scenario has slowed down it is also told when it is written.
"""

from itertools import groupby

from jepsen_like.scenarios.stage.story import Story, Told, appended_after, offsets, told_to_part
from jepsen_like.sim.logs.logtree import Entry
from jepsen_like.sim.logs.running_replica import RunningReplica
from jepsen_like.sim.time.virtual_time import VirtualTime
from jepsen_like.sim.world.host import Host
from jepsen_like.sim.world.observer import Observer, ReplicaOf
from quorum.core.effects import (
    Effect,
    Event,
    Reply,
    Request,
    ResetLog,
    SaveSnapshot,
    Send,
    Stop,
    Trim,
    Truncate,
)
from quorum.core.storage import METADATA_LOG
from wire.errors import ErrorCode
from wire.messages.fetching import FetchRequest, FetchResponse, FetchSnapshotRequest
from wire.messages.quorum_epochs import VotePartition, VoteRequest, VoteResponse
from wire.messages.voters import AddRaftVoterResponse, RemoveRaftVoterResponse

__all__ = ["QuorumStory"]

_ROLES = {
    "prospective": "asks for pre-votes in epoch {epoch}",
    "candidate": "is a candidate in epoch {epoch}",
    "leader": "leads epoch {epoch}",
    "resigned": "has resigned from epoch {epoch}",
    "unattached": "knows no leader in epoch {epoch}",
    "follower": "follows {leader} in epoch {epoch}",
}


class QuorumStory(Observer):
    """Looks on at a simulated quorum."""

    def __init__(self, story: Story) -> None:
        self.slow: set[int] = set()  # nodes whose disks the scenario has slowed down
        self.story = story
        self._asked: dict[tuple[int, int], object] = {}  # by node and token: the request
        self._told = Told(story)
        self._durable: dict[int, Entry | None] = {}
        self._written: dict[int, Entry | None] = {}

    def forget(self, node: int) -> None:
        self._told.forget(node, ("role", "high watermark", "download"))

    # --- Observer -----------------------------------------------------------------------

    def attach(self, world: VirtualTime, replica_of: ReplicaOf) -> None:
        self._replica_of = replica_of

    def received(self, host: Host, event: Event) -> None:
        if isinstance(event, Request) and isinstance(event.body, VoteRequest | FetchRequest):
            self._asked[host.node_id, event.token] = event.body

    def performing(self, host: Host, effect: Effect) -> None:
        node = host.node_id
        if isinstance(effect, Reply):
            self._tell_answer(node, self._asked.pop((node, effect.token), None), effect.body)
        match effect:
            case Truncate(end_offset=end_offset):
                self.story.tell(f"{node} truncates its log to offset {end_offset}")
            case ResetLog(start=start):
                self.story.tell(f"{node} begins its log anew at offset {start.offset}")
            case SaveSnapshot(id=id):
                self.story.tell(f"{node} takes a snapshot of all before offset {id.offset}")
            case Trim(start_offset=start_offset):
                self.story.tell(f"{node} drops its log before offset {start_offset}")
            case Send(body=FetchSnapshotRequest() as request, to=to):
                self._tell_download(node, request, to.node_id)
            case Reply(body=AddRaftVoterResponse() | RemoveRaftVoterResponse() as answer):
                done = answer.error_code is ErrorCode.NONE
                told = "has changed the voters" if done else f"refuses: {answer.error_code.name}"
                self.story.tell(f"administrator: {node} {told}")
            case Stop(reason=reason):
                self.story.tell(f"{node} stops: {reason}")
                self.forget(node)
            case _:
                pass

    def settled(self, host: Host, effects: list[Effect]) -> None:
        replica = self._replica_of(host)
        self._tell_role(host.node_id, replica)
        self._tell_log(host)
        end = replica.high_watermark
        line = f"{host.node_id} knows that all before {end} is committed"
        self._told.tell("high watermark", host.node_id, end, line)

    # --- what is told -------------------------------------------------------------------

    def _tell_answer(self, node: int, asked: object, answer: object) -> None:
        """Who votes, or would vote, for whom; and where logs are said to part."""
        match asked, answer:
            case VoteRequest(topics=(topic, *_)), VoteResponse(topics=(answered, *_)):
                is_granted = answered.partitions[0].vote_granted
                self.story.tell(f"{node} {_voted(topic.partitions[0], is_granted)}")
            case FetchRequest(replica_state=state), FetchResponse(responses=(fetched, *_)):
                diverging = fetched.partitions[0].diverging_epoch
                if diverging.end_offset >= 0:
                    self.story.tell(told_to_part(node, state.replica_id, diverging))
            case _:
                pass

    def _tell_role(self, node: int, replica: RunningReplica) -> None:
        leader = replica.leader
        told = _ROLES[replica.role_name].format(epoch=leader.epoch, leader=leader.leader_id)
        self._told.tell("role", node, told, f"{node} {told}")

    def _tell_log(self, host: Host) -> None:
        node, log = host.node_id, host.disk.log(METADATA_LOG)
        if node in self.slow:
            self._tell_entries(node, "writes", log.written.entries, self._written.get(node))
        self._tell_entries(node, "stores", log.durable.entries, self._durable.get(node))
        self._written[node], self._durable[node] = log.written.last, log.durable.last

    def _tell_entries(
        self, node: int, verb: str, entries: list[Entry], before: Entry | None
    ) -> None:
        """One line for records of one epoch and kind that follow one another."""
        added = appended_after(before, entries)
        for (epoch, kind), group in groupby(added, lambda entry: (entry.epoch, _kind_of(entry))):
            run = list(group)
            place = offsets(run[0].base_offset, run[-1].next_offset)
            self.story.tell(f"{node} {verb} {place} of epoch {epoch}{kind}")

    def _tell_download(self, node: int, request: FetchSnapshotRequest, source: int) -> None:
        snapshot = request.topics[0].partitions[0].snapshot_id
        line = f"{node} fetches the snapshot of all before {snapshot.end_offset} from {source}"
        self._told.tell("download", node, snapshot, line)


def _kind_of(entry: Entry) -> str:
    """What the quorum itself says in the log; nothing for records of its application."""
    if not entry.is_control:
        return ""
    parent = entry.parent
    says = []
    if parent is None or parent.epoch != entry.epoch:
        says.append("the leader's first record")
    if entry.voters is not None and (parent is None or entry.voters != parent.voters):
        says.append(f"the voters are {', '.join(str(voter.id) for voter in entry.voters)}")
    return f" ({'; '.join(says)})" if says else ""


def _voted(vote: VotePartition, is_granted: bool) -> str:
    """A pre-vote names the epoch that the candidate would leave, so that it is not told."""
    candidate, epoch = vote.replica_id, vote.replica_epoch
    if vote.pre_vote:
        return f"{'would' if is_granted else 'would not'} vote for {candidate}"
    return f"{'votes' if is_granted else 'does not vote'} for {candidate} in epoch {epoch}"
