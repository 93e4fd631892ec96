"""The findings about a cluster, from the directories and addresses of its nodes, and its status.

Facts in, findings out: nothing is asked, read or repaired here. Advice names what is safe; people
decide on what cannot be undone. Whether a node runs is in its cluster's status, for its files do
not tell that. Whether a node can be taken away is judged by its vote and by what is stored on it.

Source: Raft thesis 5.4 (which log may hold all that is committed), KIP-853 (who votes, removing a
voter), Kafka's operations guide (decommissioning brokers).
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from jepsen_like.installation import command
from quorumlab.cluster_status import has_controller, is_healthy
from quorumlab.inspection.facts import Finding, Holdings, Level, LiveFacts, LiveVoter, ReplicaFacts
from quorumlab.output import number_of
from wire.zk.designs import DESIGNS

__all__ = ["diagnose", "findings_of", "removable"]

CLOCK_DIFFERENCE_MAX_MS = 1_000
BEHIND_MAX_MS = 10_000
_ROLES = (("ZooKeeper", "zookeepers"), ("controller", "controllers"), ("broker", "brokers"))
_WELL = ("running", "leader", "follower", "observer", "standalone")
_DOWN = ("stopped", "dead")
_problem = partial(Finding, Level.PROBLEM)
_warning = partial(Finding, Level.WARNING)
_fine = partial(Finding, Level.FINE)


def diagnose(replicas: Sequence[ReplicaFacts], lives: Sequence[LiveFacts]) -> list[Finding]:
    """Problems first."""
    found = [
        *_identities(replicas, lives),
        *_damage(replicas),
        *_voter_sets(replicas),
        *_wiped(replicas, lives),
        *_logs(replicas),
        *_answers(lives),
        *_quorum(lives),
    ]
    order = list(Level)
    each_once = dict.fromkeys(found)
    return sorted(each_once, key=lambda finding: order.index(finding.level))


def _identities(replicas: Sequence[ReplicaFacts], lives: Sequence[LiveFacts]) -> Iterator[Finding]:
    clusters: dict[str, list[str]] = {}
    named = [(each.cluster_id, each.name) for each in replicas]
    named += [(each.cluster_id, each.name) for each in lives]
    for known, name in named:
        if known is not None:
            clusters.setdefault(known, []).append(name)
    if len(clusters) > 1:
        parts = [f"{cluster_id} in {', '.join(names)}" for cluster_id, names in clusters.items()]
        yield _problem(
            f"these belong to different clusters: {'; '.join(parts)}",
            "point the odd one at its own directory; never edit cluster.id of one that has data",
        )
    elif clusters:
        (cluster_id,) = clusters
        yield _fine(f"all belong to cluster {cluster_id}")
    yield from _twice("node.id", {r.name: r.node_id for r in replicas})
    yield from _twice("directory.id", {r.name: r.directory_id for r in replicas})


def _twice(what: str, values: Mapping[str, object]) -> Iterator[Finding]:
    names: dict[object, list[str]] = {}
    for name, value in values.items():
        if value is not None:
            names.setdefault(value, []).append(name)
    for value, found in names.items():
        if len(found) > 1:
            yield _problem(
                f"{what} {value} is in {' and in '.join(found)}",
                "one is a copy of the other: start only one of them",
            )


def _damage(replicas: Sequence[ReplicaFacts]) -> Iterator[Finding]:
    for replica in replicas:
        if replica.torn_tail:
            yield _warning(
                f"{replica.name}: {replica.torn_tail}",
                "what a node is just writing looks so, or what a crash left: it cuts it off itself",
            )
        for problem in replica.problems:
            yield _problem(
                f"{replica.name}: {problem}",
                f"`{command('inspect', 'verify', replica.name)}` shows more",
            )


def _voter_sets(replicas: Sequence[ReplicaFacts]) -> Iterator[Finding]:
    told = [replica for replica in replicas if replica.voters.voters]
    if not told:
        return
    yield from _unlike_sets(told)
    newest = max(told, key=_log_order)
    kind = "dynamic" if newest.voters.is_dynamic else "static"
    ids, source = _ids(newest.voters.ids), f"by {newest.voters.source} of {newest.name}"
    yield _fine(f"voters are {ids}, {kind}, {source}")
    known = {replica.node_id for replica in replicas}
    absent = [voter for voter in newest.voters.ids if voter not in known]
    if absent:
        text = f"the directories of voters {_ids(absent)} were not given"
        if _majority(replicas):
            yield _fine(text)
        else:
            why = "without a majority of the voters' logs nobody can say what was committed"
            yield _warning(text, why)


def _unlike_sets(told: Sequence[ReplicaFacts]) -> Iterator[Finding]:
    static = [replica for replica in told if not replica.voters.is_dynamic]
    if 0 < len(static) < len(told):
        names = ", ".join(replica.name for replica in static)
        yield _warning(
            f"the voters are dynamic, but {names} knows static ones only",
            "it has not read the log far enough, or it comes from before the change",
        )
    sets = {frozenset(replica.voters.ids): replica for replica in reversed(static)}
    if len(sets) > 1:
        parts = [f"{_ids(sorted(ids))} in {replica.name}" for ids, replica in sets.items()]
        yield _problem(
            f"static voters are not the same everywhere: {'; '.join(sorted(parts))}",
            "two majorities may not overlap then: stop the nodes, and give all of them the same"
            " controller.quorum.voters",
        )


def _ids(ids: Iterable[int]) -> str:
    return ", ".join(map(str, ids))


def _wiped(replicas: Sequence[ReplicaFacts], lives: Sequence[LiveFacts]) -> Iterator[Finding]:
    """Finds voters that have lost what they had promised under their id."""
    newest = max(replicas, key=_log_order, default=None)
    named: dict[int | None, str | None] = {}
    if newest is not None:
        named = {voter.id: voter.directory_id for voter in newest.voters.voters}
    for replica in replicas:
        expected = named.get(replica.node_id)
        if expected is not None and replica.directory_id not in (None, expected):
            yield _formatted_anew(
                f"{replica.name} of node {replica.node_id} has directory.id {replica.directory_id}",
                expected,
                replica.node_id,
                next((live.option for live in lives), "--bootstrap-controller HOST:PORT"),
            )
        is_empty = replica.end_offset <= 0 and newest is not None and newest.end_offset > 0
        if is_empty and replica.node_id in named:
            yield _problem(
                f"{replica.name} of voter {replica.node_id} has no log: it was wiped, or never ran",
                "a voter that forgot its log can elect one that lacks committed records: start it"
                " only while a majority of the others is up and caught up",
            )
    for live in lives:
        voters = {voter.id: voter.directory_id for voter in live.voters}
        for observer in live.observers:
            expected = voters.get(observer.id)
            if expected is not None and observer.directory_id != expected:
                text = f"node {observer.id} runs with directory.id {observer.directory_id}"
                yield _formatted_anew(text, expected, observer.id, live.option)


def _formatted_anew(text: str, expected: str, node_id: int | None, option: str) -> Finding:
    return _problem(
        f"{text}, but the voter of that id has {expected}: it was formatted anew",
        f"`quorumlab quorum remove-voter {option} --controller-id {node_id}"
        f" --controller-directory-id {expected}`, then add-voter, while a majority of the others is"
        " up",
    )


def _log_order(replica: ReplicaFacts) -> tuple[int, int]:
    return replica.last_epoch, replica.end_offset


def _logs(replicas: Sequence[ReplicaFacts]) -> Iterator[Finding]:
    """Finds the log that could lead: the longest of the latest epoch."""
    logs = [replica for replica in replicas if replica.end_offset >= 0]
    if len(logs) < 2:
        return
    longest = max(logs, key=_log_order)
    yield _fine(
        f"{longest.name} has the longest log: epoch {longest.last_epoch}, to offset "
        f"{longest.end_offset}"
    )
    majority = _majority(replicas)
    if majority:
        count = len({voter.node_id for voter in majority})
        yield _fine(
            f"{count} of {len(longest.voters.ids)} voters' logs are here: everything committed "
            f"is in the longest of them, {max(majority, key=_log_order).name}"
        )
    for replica in logs:
        lag = longest.end_offset - replica.end_offset
        if lag:
            records = number_of(lag, "record")
            behind = f"{replica.name} ends {records} before it, in epoch {replica.last_epoch}"
            yield _fine(behind)


def _majority(replicas: Sequence[ReplicaFacts]) -> list[ReplicaFacts]:
    """The voters' logs, of which one holds all that is committed; none if they are too few."""
    if not replicas:
        return []
    longest = max(replicas, key=_log_order)
    voters = [each for each in replicas if _remembers(each, longest)]
    count = len({voter.node_id for voter in voters})
    return voters if 2 * count > len(longest.voters.ids) else []


def _remembers(replica: ReplicaFacts, longest: ReplicaFacts) -> bool:
    """Is it a voter's log with all that the voter ever acknowledged?"""
    named = {voter.id: voter.directory_id for voter in longest.voters.voters}
    if replica.node_id not in named or replica.problems or replica.end_offset <= 0:
        return False
    return named[replica.node_id] in (None, replica.directory_id)


def _answers(lives: Sequence[LiveFacts]) -> Iterator[Finding]:
    for live in lives:
        if live.failure is not None:
            yield _problem(f"{live.name} does not answer: {live.failure}")
        if live.no_quorum:
            yield _fine(live.no_quorum)
        if abs(live.clock_difference_ms) > CLOCK_DIFFERENCE_MAX_MS:
            yield _warning(
                f"the clock of the leader, asked through {live.name}, differs from this one by "
                f"{live.clock_difference_ms} ms",
                "timestamps of records and retention by time rest on it",
            )
        for endpoint, why in live.unreachable.items():
            yield _problem(
                f"voter endpoint {endpoint} cannot be reached from here: {why}",
                "if the other voters cannot reach it either, it can never be elected",
            )
    leaders = {(live.leader_id, live.leader_epoch) for live in lives if live.leader_id >= 0}
    if len({epoch for _, epoch in leaders}) != len(leaders):
        yield _problem(f"two leaders of one epoch: {sorted(leaders)}")


def _quorum(lives: Sequence[LiveFacts]) -> Iterator[Finding]:
    """Judges the quorum as the leader of the latest epoch sees it."""
    answered = [live for live in lives if live.leader_id >= 0]
    if not answered:
        if not all(live.no_quorum for live in lives):
            yield _problem(
                "nobody knows a leader of the quorum",
                "start more voters: more than half of them must run and reach each other",
            )
        return
    live = max(answered, key=lambda each: each.leader_epoch)
    yield _fine(
        f"node {live.leader_id} leads epoch {live.leader_epoch}; committed before offset "
        f"{live.high_watermark}"
    )
    for voter in live.voters:
        if voter.behind_ms < 0 or voter.behind_ms > BEHIND_MAX_MS:
            since = f"for {voter.behind_ms // 1000} s"
            if voter.behind_ms < 0:
                since = f"since node {live.leader_id} began to lead epoch {live.leader_epoch}"
            yield _problem(
                f"voter {voter.id} has not been caught up {since}: it is at {voter.end_offset}, "
                f"the leader's high watermark at {live.high_watermark}",
                f"look at its log; `quorumlab quorum describe {live.option} --replication`"
                " follows it",
            )


# --- can a node be removed? ------------------------------------------------------------------


def removable(live: LiveFacts, held: Holdings) -> list[Finding]:
    """Judges the node's vote, and what it stores."""
    is_voter = any(voter.id == held.broker_id for voter in live.voters)
    if not (is_voter or held.is_registered or held.replicas):
        text = f"node {held.broker_id} is neither a voter nor a broker of this cluster"
        return [_warning(text)]
    found = [_voter_removable(live, held.broker_id)] if is_voter else []
    return [*found, _broker_removable(held)] if held.is_registered or held.replicas else found


def _broker_removable(held: Holdings) -> Finding:
    if not held.replicas:
        return _fine(
            f"yes: broker {held.broker_id} holds no replica", "stop it, then unregister it"
        )
    text = f"no: broker {held.broker_id} holds replicas of {held.replicas} partitions"
    if held.only_in_sync:
        text += f", and of {held.only_in_sync} the only one in sync"
    return _problem(text, "reassign them to other brokers first, and wait for the end")


def _voter_removable(live: LiveFacts, node_id: int) -> Finding:
    rest = [voter for voter in live.voters if voter.id != node_id]
    sound = [voter for voter in rest if _is_sound(voter, live)]
    if not rest:
        text = f"no: node {node_id} is the only voter"
        return _problem(text, "add another voter first")
    if 2 * len(sound) <= len(rest):
        return _problem(
            f"no: of the {len(rest)} voters that remain only {len(sound)} are up and caught up",
            "bring the others back first, or the quorum has no majority without this node",
        )
    spare = len(sound) - (len(rest) // 2 + 1)
    return _fine(
        f"yes: {len(sound)} of the {len(rest)} voters that remain are up and caught up; after that "
        f"{spare} of them may fail",
        _way_out(live, node_id),
    )


def _way_out(live: LiveFacts, node_id: int) -> str:
    if not live.is_dynamic:
        return (
            "the voters are static: take it out of controller.quorum.voters of all nodes, which"
            " are restarted one by one"
        )
    return (
        "remove it from the voters before it is stopped: `quorumlab quorum remove-voter"
        f" {live.option} --controller-id {node_id}`"
    )


def _is_sound(voter: LiveVoter, live: LiveFacts) -> bool:
    """Is the voter caught up, and does somebody listen at its endpoint?"""
    return 0 <= voter.behind_ms <= BEHIND_MAX_MS and voter.endpoint not in live.unreachable


Status = Mapping[str, Any]


# --- does every node run? --------------------------------------------------------------------


def findings_of(status: Status) -> Iterator[Finding]:
    """`status` is what `quorumlab.cluster_status.describe` returns."""
    directory = status["directory"]
    nodes = [(role, node) for role, key in _ROLES for node in status[key]]
    if status["design"] in DESIGNS:
        text = f"{status['design']} keeps its metadata in ZooKeeper: there is no log to look at"
        yield _fine(text)
    if all(node["state"] in _DOWN for _, node in nodes):
        text = f"nothing of the cluster in {directory} runs"
        yield _problem(text, f"`{command('up', '--dir', directory)}` starts it")
        return
    failing = [(role, node) for role, node in nodes if node["state"] not in _WELL]
    for role, node in failing:
        yield _of_node(role, node, directory)
    if is_healthy(status):
        yield _fine(f"all {len(nodes)} nodes run, and every partition is replicated")
    elif not failing:
        yield from _of_cluster(status)


def _of_node(role: str, node: Mapping[str, Any], directory: str) -> Finding:
    verb = ["up"] if role == "ZooKeeper" else ["node-start", node["id"]]
    start = f"`{command(*verb, '--dir', directory)}` starts it; " if node["state"] in _DOWN else ""
    log = node.get("log", f"{node['dir']}/node.log")
    text = f"{role} {node['id']} is {node['state']}"
    return _problem(text, f"{start}its last words are in {log}")


def _of_cluster(status: Status) -> Iterator[Finding]:
    """Explains a cluster that is unhealthy although each of its nodes runs."""
    offline = status["offline_partitions"]
    lagging = status["under_replicated_partitions"]
    if offline:
        yield _problem(f"{offline} partitions have no leader")
    if lagging:
        yield _problem(f"{lagging} partitions are under-replicated")
    if status["active_controller"] is None and has_controller(status["design"]):
        yield _problem("no controller is active")
    if not status["metadata_is_current"]:
        yield _problem("no node can tell how the partitions are now")
