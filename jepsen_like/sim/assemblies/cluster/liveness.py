"""The liveness bounds of a healed cluster (L-*).

Each function describes what is still missing, or returns an empty text. The bounds come from the
options; as they are meant for an idle machine, a run allows three times as much.

Known exceptions: a partition whose ISR is empty and that has no eligible leader replica has lost
all of them to power cuts; KIP-966 leaves it without a leader rather than without records.
"""

from collections.abc import Callable, Iterator
from itertools import chain

from broker.groups.offsets_topic import OFFSETS_TOPIC
from broker.membership.lifecycle import BrokerState
from broker.partition.isr import Committed
from broker.partition.partition import LeaderOf, Partition
from controller.metadata.partitions import NO_LEADER
from jepsen_like.sim.assemblies.cluster.cluster import Cluster
from jepsen_like.sim.assemblies.cluster.invariants.watched import TOPIC, Key, Watched
from jepsen_like.sim.violation import Stuck
from quorum.core.storage import METADATA_LOG

__all__ = [
    "Convergence",
    "Missing",
    "brokers_are_up",
    "controller_is_active",
    "directories_are_known",
    "everything_is_settled",
    "failures_are_known",
    "follows_metadata",
    "groups_are_stable",
    "in_sync",
    "is_ready",
    "led",
    "led_as_told",
    "transactions_have_ended",
    "written_since",
]

_POLL_US = 5_000  # how often it is looked at
Missing = Callable[[Cluster], str]  # what is missing, for people; "" if nothing is


def controller_is_active(cluster: Cluster) -> str:
    """L-EL: every node knows one leader of the metadata log, and it is active."""
    leaders = {node_id: node.leader for node_id, node in sorted(cluster.nodes.items())}
    if len(set(leaders.values())) > 1 or cluster.active_controller is None:
        return f"no controller that all know: {leaders}"
    return ""


def brokers_are_up(cluster: Cluster) -> str:
    """L-BR: every broker is unfenced, has applied what is committed, and serves clients."""
    for node_id in cluster.options.brokers:
        broker = cluster.broker(node_id)
        registered = cluster.metadata.image.brokers.get(node_id)
        if broker is None or registered is None or not registered.is_active:
            return f"broker {node_id} is not unfenced: {registered}"
        if broker.lifecycle.state is not BrokerState.RUNNING or not broker.serves_clients:
            return f"broker {node_id} is {broker.lifecycle.state.name}"
    return ""


def follows_metadata(cluster: Cluster) -> Missing:
    """L-BR: every node has written and applied all that is committed by now."""
    committed = cluster.quorum.committed[-1]

    def missing(cluster: Cluster) -> str:
        for node_id, node in sorted(cluster.nodes.items()):
            written = cluster.hosts[node_id].disk.log(METADATA_LOG).written
            if not written.holds(committed):
                return f"the log of {node_id} ends in {written.last}, without {committed}"
            if node.applied_offset < committed.next_offset:
                return f"node {node_id} has applied {node.applied_offset} of {committed}"
        return ""

    return missing


def led(cluster: Cluster) -> str:
    """L-PL: every partition has a leader, whose broker knows that it leads."""
    return next(filter(None, (_is_led(cluster, each) for each in _electable(cluster))), "")


def led_as_told(cluster: Cluster) -> str:
    """L-STOP: the same without controllers. Nobody tells a broker that its election is committed
    if it had not heard before they died."""
    committed = cluster.quorum.committed[-1]
    for watched in _electable(cluster):
        assert watched.state is not None
        node = cluster.nodes.get(watched.state.leader)
        is_told = node is None or node.applied_offset >= committed.next_offset
        if is_told and (why := _is_led(cluster, watched)):
            return why
    return ""


def _is_led(cluster: Cluster, watched: Watched) -> str:
    """Why it is not; empty if it is."""
    assert watched.state is not None
    if watched.state.leader == NO_LEADER:
        return f"{watched.name} has no leader: {watched.state}"
    if _leading(cluster, watched) is None:
        return f"{watched.name}: {watched.state.leader} does not know that it leads"
    return ""


def in_sync(cluster: Cluster) -> str:
    """L-ISR: every replica is in sync, and no change of an ISR is pending."""
    for watched in _electable(cluster):
        state, role = watched.state, _leading(cluster, watched)
        assert state is not None
        if set(state.isr) != set(state.replicas) or state.adding_replicas:
            return f"{watched.name}: {state.isr} of {state.replicas} in sync; {role}"
        if role is None or not isinstance(role.isr, Committed):
            return f"{watched.name}: an ISR change hangs: {role}"
    return ""


def is_ready(cluster: Cluster) -> str:
    """A cluster that has just been started serves its topic."""
    if not cluster.partitions.watched:
        return "there is no topic"
    return in_sync(cluster)


def failures_are_known(cluster: Cluster) -> str:
    """L-DIR: the controller has recorded each directory that failed, and nobody leads from it."""
    for node_id in cluster.options.brokers:
        failed = cluster.hosts[node_id].disk.directories.unreadable
        registered = cluster.metadata.image.brokers.get(node_id)
        if registered is None or failed & set(registered.log_dirs):
            return f"broker {node_id} is not known to have lost {failed}: {registered}"
    for watched in cluster.partitions.watched.values():
        state = watched.state
        if state is None or state.leader == NO_LEADER:
            continue
        directories = cluster.hosts[state.leader].disk.directories
        if directories.homes.get(watched.name) in directories.unreadable:
            return f"{watched.name} is led from a directory that has failed: {state}"
    return ""


def directories_are_known(cluster: Cluster) -> str:
    """L-DIR: the metadata names the directory in which each replica lies (AssignReplicasToDirs)."""
    for watched in _electable(cluster):
        assert watched.state is not None
        for member, directory in zip(
            watched.state.replicas, watched.state.directories, strict=True
        ):
            home = cluster.hosts[member].disk.directories.homes.get(watched.name)
            if directory != home:
                return f"{watched.name} of {member} lies in {home}: {watched.state}"
    return ""


def written_since(before: dict[Key, int]) -> Missing:
    """L-WR: since then, a batch has been acknowledged in every partition of the client's topic."""

    def missing(cluster: Cluster) -> str:
        for key, watched in cluster.partitions.watched.items():
            is_asked = _is_electable(watched) and watched.name.startswith(f"{TOPIC}-")
            if is_asked and watched.acknowledgements == before.get(key, 0):
                return f"nothing acknowledged in {watched.name}: {watched.state}"
        return ""

    return missing


def groups_are_stable(cluster: Cluster) -> str:
    """L-GRP: all members of a group are in one generation, and each piece of work has one owner in
    it."""
    offsets = cluster.partitions.named(f"{OFFSETS_TOPIC}-0")
    if offsets is None or not _is_electable(offsets):
        return ""
    for group in sorted({member.group for member in cluster.members}):
        members = [member for member in cluster.members if member.group == group]
        shares = [sorted(member.pieces or ()) for member in members]
        generations = {member.generation for member in members}
        all_pieces = sorted(members[0].all_pieces)
        is_stable = len(generations) == 1 and sorted(chain(*shares)) == all_pieces
        if not is_stable or any(member.pieces is None for member in members):
            return f"{group}: generations {generations}, {shares}"
    return ""


def transactions_have_ended(cluster: Cluster) -> str:
    """L-TXN: none is open, whoever has left it: all that is committed can be read. Who has lost the
    decision, or its marker, to a power cut does not know that there is one to be ended."""
    if cluster.transactions.has_forgotten:
        return ""
    for watched in _electable(cluster):
        if watched.excused:
            continue
        assert watched.state is not None
        partition = _replica(cluster, watched.state.leader, watched)
        if partition is None or partition.log is None:
            return f"{watched.name} is not open"
        log = partition.log
        if log.last_stable_offset != log.high_watermark:
            return f"{watched.name}: {log.last_stable_offset} of {log.high_watermark} is stable"
    return ""


def everything_is_settled(cluster: Cluster) -> str:
    """L-HW: nothing is written any more; all logs are the same and all of them is exposed."""
    watched_by_key = cluster.partitions.watched
    waits = [watched_by_key[key].name for key in cluster.client.waits if watched_by_key[key].state]
    operators = (*cluster.operators, *cluster.members)
    if waits or not all(operator.is_quiet for operator in operators):
        return f"no answer yet: {waits or 'to an operator'}"
    for key, watched in watched_by_key.items():
        if not _is_electable(watched):
            continue
        assert watched.state is not None
        ends = dict(_ends(cluster, key, watched))
        if len(ends) < len(watched.state.replicas) or len(set(ends.values())) > 1:
            return f"{watched.name}: (high watermark, end) by replica: {ends}"
        high_watermark, end_offset = next(iter(ends.values()))
        if high_watermark != end_offset:
            return f"{watched.name}: {end_offset - high_watermark} records are not exposed: {ends}"
        position = cluster.client.positions.get(key)
        if position is not None and position != end_offset:
            return f"{watched.name}: read up to {position} of {end_offset}"
    return ""


def _electable(cluster: Cluster) -> list[Watched]:
    return [watched for watched in cluster.partitions.watched.values() if _is_electable(watched)]


def _is_electable(watched: Watched) -> bool:
    state = watched.state
    return state is not None and bool(state.isr or state.eligible_leader_replicas)


def _leading(cluster: Cluster, watched: Watched) -> LeaderOf | None:
    """The role of the leader, if it knows the latest leader epoch."""
    assert watched.state is not None
    partition = _replica(cluster, watched.state.leader, watched)
    role = None if partition is None else partition.role
    if isinstance(role, LeaderOf) and role.leader_epoch == watched.state.leader_epoch:
        return role
    return None


def _replica(cluster: Cluster, node_id: int, watched: Watched) -> Partition | None:
    broker = cluster.broker(node_id)
    if broker is None:
        return None
    return next((replica for replica in broker.replicas if replica.name == watched.name), None)


def _ends(cluster: Cluster, key: Key, watched: Watched) -> Iterator[tuple[int, tuple[int, int]]]:
    assert watched.state is not None
    for node_id in watched.state.replicas:
        partition = _replica(cluster, node_id, watched)
        if partition is not None and partition.log is not None and partition.topic_id == key[0]:
            yield node_id, (partition.log.high_watermark, partition.log.end_offset)


class Convergence:
    """A healed cluster comes to rest: the bounds, one after the other.

    Runs the world until what must come true has; raises Stuck when a bound is exceeded.

    `patience`: how much longer than a bound it may take.
    """

    def __init__(self, cluster: Cluster, *, events_max: int, patience: int = 3) -> None:
        self._cluster = cluster
        self._events_max = events_max
        self._patience = patience

    def learn_of_failed_directories(self) -> None:
        """They have not been repaired yet."""
        self._have_brokers()
        self.reach("L-DIR", failures_are_known, self._cluster.options.unfencing_bound_ms)

    def _have_brokers(self) -> None:
        options = self._cluster.options
        election_ms = options.quorum.election_bound_ms + options.quorum.catch_up_bound_ms
        self.reach("L-EL", controller_is_active, election_ms)
        self.reach("L-BR", brokers_are_up, options.unfencing_bound_ms)

    def run(self) -> None:
        cluster, options = self._cluster, self._cluster.options
        self._have_brokers()
        self.reach("L-PL", led, options.session_timeout_ms)
        self.reach("L-ISR", in_sync, options.in_sync_bound_ms)
        write_ms = 2 * options.client_timeout_ms + options.lag_time_max_ms
        if options.produce_interval_ms:
            watched = cluster.partitions.watched
            before = {key: partition.acknowledgements for key, partition in watched.items()}
            self.reach("L-WR", written_since(before), write_ms)
        if options.directories > 1:
            self.reach("L-DIR", directories_are_known, options.unfencing_bound_ms)
        self.reach("L-GRP", groups_are_stable, options.group_bound_ms)
        for member in cluster.members:
            member.works = False
        cluster.client.produces = False
        for producer in cluster.producers:
            producer.works = False
        if options.transaction_version:
            self.reach("L-TXN", transactions_have_ended, options.transactions_bound_ms)
        self.reach("L-HW", everything_is_settled, write_ms)
        self.reach("L-BR", follows_metadata(cluster), options.quorum.catch_up_bound_ms)

    def reach(self, bound: str, missing: Missing, bound_ms: int) -> None:
        cluster, within_ms = self._cluster, self._patience * bound_ms
        why = cluster.world.wait_for(
            lambda: missing(cluster), within_ms, events_max=self._events_max, every_us=_POLL_US
        )
        if why:
            raise Stuck(bound, f"after {within_ms} ms: {why}")
