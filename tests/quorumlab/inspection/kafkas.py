"""What Apache Kafka's dump-log and metadata shell print, to be held against what we tell."""

import json
import re
from pathlib import Path
from typing import Any

from quorumlab.inspection.entries import Entry
from quorumlab.inspection.tree import Node

__all__ = ["assert_shell_agrees", "dumped_records", "told_by_us"]

GOLDEN = Path(__file__).parents[2] / "golden"
_DUMPED = re.compile(r"\| offset: (\d+) .*headerKeys: \[\] (payload|\w+):? (\{.*)$")
_LEVELS = {
    name: mapping["metadata.version"]
    for name, mapping in json.loads((GOLDEN / "features.json").read_text())["mapping"].items()
}
Told = tuple[int, str, object]


# --- dump-log -------------------------------------------------------------------------------


def dumped_records(dump: str) -> list[Told]:
    """Offset, type and fields of every record that it printed."""
    return [_told(line) for line in dump.splitlines() if line.startswith("| offset")]


def _told(line: str) -> Told:
    match = _DUMPED.match(line)
    assert match is not None, line
    offset, kind, text = match.groups()
    value = json.loads(text)
    return (int(offset), value["type"], value) if kind == "payload" else (int(offset), kind, value)


def told_by_us(entry: Entry) -> Told:
    if entry.is_control:
        return entry.offset, entry.type, entry.data()
    value = {"type": entry.type, "version": entry.version, "data": entry.data()}
    return entry.offset, entry.type, value


# --- metadata shell -------------------------------------------------------------------------


def assert_shell_agrees(shown: str, ours: Node) -> None:
    """`tree /image` shows nothing that our tree of the same log has not."""
    theirs = _parsed(shown)
    _assert_same_topics(theirs["topics"]["byName"], ours)
    for kind in ("brokers", "controllers"):
        told = theirs["cluster"].get(kind, {})
        assert sorted(told) == sorted(ours[kind])
        for node_id, registration in told.items():
            _assert_same_node(registration[""], node_id, ours[kind][node_id])
    _assert_same_configs(theirs["configs"], ours)
    _assert_same_features(theirs["features"], ours)
    _assert_same_users(theirs, ours)


def _parsed(text: str) -> dict[str, Any]:
    """Names end with a colon and what they hold is indented; a value stands alone."""
    top: dict[str, Any] = {}
    stack = [(-1, top)]
    for line in text.splitlines():
        if not line.strip():
            continue
        depth = len(line) - len(line.lstrip())
        while stack[-1][0] >= depth:
            stack.pop()
        if line.endswith(":"):
            child: dict[str, Any] = {}
            stack[-1][1][line.strip()[:-1]] = child
            stack.append((depth, child))
        else:
            stack[-1][1][""] = line.strip()
    return top


def _fields(text: str) -> dict[str, Any]:
    """`Registration(id=1, isr=[1, 2], rack=Optional.empty)`: words, and lists of words."""
    pairs = re.findall(r"(\w+)=(\[[^\]]*\]|\{[^}]*\}|[^,)]*)", text.partition("(")[2])
    return {
        name: [each for each in value[1:-1].split(", ") if each] if value[:1] in "[{" else value
        for name, value in pairs
    }


def _assert_same_topics(by_name: dict[str, Any], ours: Node) -> None:
    assert sorted(by_name) == sorted(ours["topics"])
    for name, topic in by_name.items():
        assert topic.pop("id")[""] == ours["topics"][name]["id"]
        assert topic.pop("name")[""] == name
        assert sorted(topic) == sorted(ours["topics"][name]["partitions"])
        for index, told in topic.items():
            _assert_same_partition(_fields(told[""]), ours["topics"][name]["partitions"][index])


def _assert_same_partition(theirs: dict[str, Any], ours: Node) -> None:
    numbers = {
        "leader": "leader",
        "leaderEpoch": "leader_epoch",
        "partitionEpoch": "partition_epoch",
    }
    lists = {
        "replicas": "replicas",
        "isr": "isr",
        "addingReplicas": "adding_replicas",
        "removingReplicas": "removing_replicas",
        "elr": "eligible_leader_replicas",
        "lastKnownElr": "last_known_elr",
    }
    told: dict[str, object] = {name: int(theirs.pop(name)) for name in numbers}
    told |= {name: list(map(int, theirs.pop(name))) for name in lists}
    assert told == {
        **{name: ours[our_name] for name, our_name in numbers.items()},
        **{name: ours.get(our_name, []) for name, our_name in lists.items()},
    }
    assert theirs.pop("directories") == ours["directories"]
    assert (theirs.pop("leaderRecoveryState") == "RECOVERING") == ours["recovering"]
    assert not theirs, "the shell shows what was not compared"


def _assert_same_node(text: str, node_id: str, ours: Node) -> None:
    listeners = re.findall(
        r"Endpoint\(listenerName='(\w+)', securityProtocol=\w+, host='([^']+)', port=(\d+)\)", text
    )
    assert [f"{name}://{host}:{port}" for name, host, port in listeners] == ours["listeners"]
    theirs = _fields(re.sub(r"listeners=\[.*?\], (?=supported)", "", text))
    assert theirs.pop("id") == node_id
    assert theirs.pop("incarnationId") == ours["incarnation_id"]
    features = dict(each.split(": ") for each in theirs.pop("supportedFeatures"))
    assert features == ours["features"]
    assert theirs.pop("zkMigrationReady", "false") == "false"
    assert theirs.pop("isMigratingZkBroker", "false") == "false"
    if "epoch" in theirs:
        assert int(theirs.pop("epoch")) == ours["epoch"]
        assert theirs.pop("rack") == "Optional.empty"
        assert ours["rack"] is None
        assert (theirs.pop("fenced") == "true") == ours["fenced"]
        assert (theirs.pop("inControlledShutdown") == "true") == ours["in_controlled_shutdown"]
        assert theirs.pop("directories") == ours["log_dirs"]
        cordoned = ours["cordoned_log_dirs"]
        assert theirs.pop("cordonedDirectories") == ("null" if cordoned is None else cordoned)
    assert not theirs, "the shell shows what was not compared"


def _assert_same_configs(theirs: dict[str, Any], ours: Node) -> None:
    told = {
        resource: {name: value[""] for name, value in values.items()}
        for resource, values in theirs.items()
    }
    names = {"broker": "BROKER", "topic": "TOPIC"}
    assert told == {
        names[kind] + ("" if resource == "(default)" else f":{resource}"): values
        for kind, resources in ours["configs"].items()
        for resource, values in resources.items()
    }


def _assert_same_features(theirs: dict[str, Any], ours: Node) -> None:
    told = {name.removeprefix("finalized_"): value[""] for name, value in theirs.items()}
    version = re.fullmatch(r"Optional\[(.+)\]", told.pop("metadataVersion"))
    assert version is not None
    told["metadata.version"] = _LEVELS[version[1]]
    assert {name: int(level) for name, level in told.items()} == ours["features"]


def _assert_same_users(theirs: dict[str, Any], ours: Node) -> None:
    next_id = int(theirs["producerIds"].get("nextProducerId", {"": "0"})[""])
    assert max(next_id, 0) == ours["next_producer_id"], "Kafka says -1 as long as there was none"
    assert sorted(theirs["acls"].get("byId", {})) == sorted(ours["acls"])
    scram = {kind: sorted(users) for kind, users in theirs["scram"].items() if users}
    assert scram == {kind: sorted(users) for kind, users in ours["scram_credentials"].items()}
    assert len(theirs["clientQuotas"]) == len(ours["client_quotas"])
