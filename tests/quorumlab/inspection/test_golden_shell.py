"""What Apache Kafka's own metadata shell shows of its logs and snapshots, our tree shows too."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from quorumlab.inspection.states import Moment, replay
from quorumlab.inspection.target import Target, find_target
from quorumlab.inspection.tree import Node, tree_of

GOLDEN = Path(__file__).parents[2] / "golden"
SHOWN = sorted(GOLDEN.glob("*/shell/*/*.txt"))
LEVELS = {
    name: mapping["metadata.version"]
    for name, mapping in json.loads((GOLDEN / "features.json").read_text())["mapping"].items()
}
each_image = pytest.mark.parametrize(
    "shown", SHOWN, ids=lambda path: str(path.relative_to(GOLDEN)).replace("/shell", "")
)


def parsed(text: str) -> dict[str, Any]:
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


def fields(text: str) -> dict[str, Any]:
    """`Registration(id=1, isr=[1, 2], rack=Optional.empty)`: words, and lists of words."""
    pairs = re.findall(r"(\w+)=(\[[^\]]*\]|\{[^}]*\}|[^,)]*)", text.partition("(")[2])
    return {
        name: [each for each in value[1:-1].split(", ") if each] if value[:1] in "[{" else value
        for name, value in pairs
    }


def image_of(shown: Path) -> tuple[dict[str, Any], Node]:
    node, step = shown.parent.name, shown.parents[2]
    target = find_target(str(step / node / "__cluster_metadata-0" / shown.stem))
    assert isinstance(target, Target)
    state = replay(target, Moment())
    assert state.problems == []
    return parsed(shown.read_text()), tree_of(state.image)


def test_there_is_something_to_compare() -> None:
    assert len(SHOWN) >= 5


@each_image
def test_topics_agree(shown: Path) -> None:
    theirs, ours = image_of(shown)
    by_name = theirs["topics"]["byName"]
    assert sorted(by_name) == sorted(ours["topics"])
    for name, topic in by_name.items():
        assert topic.pop("id")[""] == ours["topics"][name]["id"]
        assert topic.pop("name")[""] == name
        assert list(topic) == list(ours["topics"][name]["partitions"])
        for index, told in topic.items():
            assert_same_partition(fields(told[""]), ours["topics"][name]["partitions"][index])


def assert_same_partition(theirs: dict[str, Any], ours: Node) -> None:
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


@each_image
def test_brokers_and_controllers_agree(shown: Path) -> None:
    theirs, ours = image_of(shown)
    for kind in ("brokers", "controllers"):
        told = theirs["cluster"].get(kind, {})
        assert sorted(told) == sorted(ours[kind])
        for node_id, registration in told.items():
            assert_same_node(registration[""], node_id, ours[kind][node_id])


def assert_same_node(text: str, node_id: str, ours: Node) -> None:
    listeners = re.findall(
        r"Endpoint\(listenerName='(\w+)', securityProtocol=\w+, host='([^']+)', port=(\d+)\)", text
    )
    assert [f"{name}://{host}:{port}" for name, host, port in listeners] == ours["listeners"]
    theirs = fields(re.sub(r"listeners=\[.*?\], (?=supported)", "", text))
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
        assert theirs.pop("cordonedDirectories") == ours["cordoned_log_dirs"]
    assert not theirs, "the shell shows what was not compared"


@each_image
def test_configs_agree(shown: Path) -> None:
    theirs, ours = image_of(shown)
    told = {
        resource: {name: value[""] for name, value in values.items()}
        for resource, values in theirs["configs"].items()
    }
    names = {"broker": "BROKER", "topic": "TOPIC"}
    assert told == {
        names[kind] + ("" if resource == "(default)" else f":{resource}"): values
        for kind, resources in ours["configs"].items()
        for resource, values in resources.items()
    }


@each_image
def test_features_agree(shown: Path) -> None:
    theirs, ours = image_of(shown)
    told = {
        name.removeprefix("finalized_"): value[""] for name, value in theirs["features"].items()
    }
    version = re.fullmatch(r"Optional\[(.+)\]", told.pop("metadataVersion"))
    assert version is not None
    told["metadata.version"] = LEVELS[version[1]]
    assert {name: int(level) for name, level in told.items()} == ours["features"]


@each_image
def test_what_is_kept_of_users_agrees(shown: Path) -> None:
    theirs, ours = image_of(shown)
    next_id = int(theirs["producerIds"].get("nextProducerId", {"": "0"})[""])
    assert max(next_id, 0) == ours["next_producer_id"], "Kafka says -1 as long as there was none"
    assert list(theirs["acls"].get("byId", {})) == list(ours["acls"])
    scram = {kind: list(users) for kind, users in theirs["scram"].items() if users}
    assert scram == {kind: list(users) for kind, users in ours["scram_credentials"].items()}
    quotas = [re.sub(r"(\w+)\(([^)]*)\)", r"\1=\2", entity) for entity in theirs["clientQuotas"]]
    assert len(quotas) == len(ours["client_quotas"])
