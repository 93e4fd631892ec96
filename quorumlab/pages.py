"""The HTTP side of a node: health, metrics, and the node described in JSON.

    /livez                  200 while the process serves
    /readyz                 200 when the node does its work, else 503 with the reason
    /v1/ready               the same, for brokers as operators know it
    /v1/controller-ready    204 as leader or follower of the quorum, 503 else, 404 on brokers
    /metrics                Prometheus' text, Kafka's names
    /v1/node                the node, with the `metadata` that it knows. In ZooKeeper designs that
                            may be old: then `is_current` is false
    /v1/pulse               what of it costs nothing to tell, however many partitions there are,
                            with requests received and bytes received and sent so far
    /v1/metadata            the same `metadata`; in ZooKeeper designs it is read first
    /v1/milestones          how far it was when: see `controller.milestones`
    /v1/ledger              what it has asked, sent, written and synced, in numbers
    /v1/applied?offsets=12,15
                            {"node_id", "next_offset", "oldest", "applied_ms": {"12": MS, "15":
                            null}}: when this process applied them, by the wall clock. null from
                            `next_offset` on: not yet; before `oldest`: forgotten. At most 1,000
                            offsets, else 400; 404 in ZooKeeper designs and a quorum of registers
    /v1/znode-changes?after=NUMBER
                            {"node_id", "first", "next", "changes": [{"number", "at_ms", "path",
                            "version", "value"}]}: what this process saw change in ZooKeeper, of
                            the last 10,000 changes those with larger numbers. `first` is the oldest
                            that is kept, `next` the one to come: smaller than what is asked for if
                            the process began anew. `version` is null if it was deleted; `value` has
                            2,000 characters, or null if it is not known. 404 on nodes of a quorum
    /v1/topics              the names of all topics, as this node's metadata has them
    /v1/topics/NAME         a topic's partitions, as this node's metadata has them; 503, both of
                            them, while it reads what is committed. In zk-v1 to zk-v3 it is read
                            first, as for a client
    /v1/agent/read-committed?topic=T&config=K
                            {"value", "offset", "epoch"}: what the topic's configuration says,
                            linearizable; 409 with the `leader_id` unless this is the active
                            controller, 503 if no majority has confirmed in time that it is. Only
                            controllers with quorumlab.confirmed.reads.enable=true answer
    POST /v1/agent/register {"f": "read" | "write" | "cas", "key", "value"}
                            {"outcome": "ok" | "fail" | "info", "value" | "seen" | "error"}. The
                            value of a cas is [old, new]. Only nodes with
                            quorumlab.application=register have it

Those of the agent serve tests that drive a node, beside what Kafka's protocol has. Whoever asks
for more than health has to show what quorumlab.http.auth wants: see quorumlab.http_settings.

The numbers of the ledger do not depend on the machine. Requests over HTTP are not in it.

    zk.<operation>        asked of ZooKeeper: see `wire.zk.accounting`
    zk.watches_armed      left at a place where this client had none
    zk.watches_fired      events for which it waited
    rpc.sent.<API>        requests to other nodes
    rpc.received.<API>    requests of nodes and clients
    rpc.bytes_sent        of frames, in requests and in answers; also by API, behind another dot
    rpc.bytes_received
    fsyncs                of files and directories
    log.records           appended to the metadata log, control records too

Source: the health contract that operators of Kafka on Kubernetes ask for.
"""

import json
from collections.abc import Callable, Collection, Mapping
from functools import cache
from typing import Any

from controller.committed_reads import ReadCommittedRequest, ReadCommittedResponse
from controller.metadata.image import MetadataImage
from controller.metadata.topics import TopicImage
from quorum.node.driver_counts import DriverCounts
from quorum.node.register import RegisterRequest, RegisterResponse
from quorumlab.change_pages import change_routes
from quorumlab.node_parts import NodeParts
from wire.api_table import api_by_key, camel_case
from wire.errors import ErrorCode
from wire.http import Answer, PostRoute, Route
from wire.primitives import uuid_text

__all__ = ["metadata_of", "parse_register", "posts", "routes", "rpc_counts"]

_READING_SECONDS = 10.0  # for all partitions, in zk-v3 one after the other
_LOOKING_SECONDS = 0.5  # for one topic: clients of these pages often wait a second
_METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8"


def routes(node: NodeParts) -> Mapping[str, Route]:
    return {
        "/v1/agent/read-committed": lambda query: _read_committed(node, query),
        "/livez": lambda _: Answer(body=b"ok"),
        "/readyz": lambda _: _readiness(node),
        "/v1/ready": lambda _: _readiness(node),
        "/v1/controller-ready": lambda _: _controller_readiness(node),
        "/metrics": _metrics(node),
        "/v1/node": lambda _: Answer.json(describe_node(node)),
        "/v1/pulse": lambda _: Answer.json(_pulse(node)),
        "/v1/metadata": lambda _: _current_metadata(node),
        "/v1/milestones": lambda _: Answer.json(node.milestones.describe()),
        "/v1/ledger": lambda _: Answer.json({"counts": ledger(node)}),
        **change_routes(node),
        "/v1/topics": lambda _: _topics(node),
        "/v1/topics/{name}": lambda parameters: _topic(node, parameters["name"]),
    }


def _metrics(node: NodeParts) -> Route:
    @cache
    def rendered() -> Callable[[], bytes]:
        from quorumlab.metrics import expose  # with Prometheus' library, once somebody asks

        return expose(lambda: describe_node(node))

    return lambda _: Answer(content_type=_METRICS_TYPE, body=rendered()())


def _readiness(node: NodeParts) -> Answer:
    reason = node.why_not_ready()
    return Answer.json({"ready": True}) if reason is None else Answer.json({"error": reason}, 503)


def _controller_readiness(node: NodeParts) -> Answer:
    if node.controller is None:
        return Answer.json({"error": "this node is not a controller"}, 404)
    if node.is_in_quorum:
        return Answer(status=204)
    role = node.facts()["role"]
    return Answer.json({"error": f"controller not ready, current raft state: {role}"}, 503)


def describe_node(node: NodeParts) -> dict[str, Any]:
    """Keys are added, never changed."""
    described: dict[str, Any] = {
        "node_id": node.config.node_id,
        "roles": sorted(node.config.roles),
        "quorum": node.facts(),
        "metadata": _known_metadata(node),
        "driver": node.driver.counts.describe(),
    }
    if node.throttle is not None:
        described["throttled"] = node.throttle.describe()
    if node.controller is not None:
        last = node.take_over
        described["take_over"] = {
            "epoch": None if last is None else last.epoch,
            "ms": None if last is None else last.took_ms,
            "replayed_records": None if last is None else last.replayed_records,
        }
    if node.broker is not None:
        from quorumlab import broker_side

        described["broker"] = broker_side.describe(node.broker)
    return described


def _pulse(node: NodeParts) -> dict[str, Any]:
    counts = node.driver.counts
    traffic = counts.traffic
    return {
        "node_id": node.config.node_id,
        "roles": sorted(node.config.roles),
        "quorum": node.facts(),
        "broker_state": None if node.broker is None else node.broker.lifecycle.state.name.lower(),
        "requests": sum(each.received for each in counts.apis.values()),
        "bytes": sum(traffic.sent_bytes.values()) + sum(traffic.received_bytes.values()),
    }


def _image(node: NodeParts) -> MetadataImage:
    """The metadata that this node knows to be committed."""
    if node.controller is not None:
        return node.controller.image
    if node.broker is not None:
        return node.broker.cluster.image
    return MetadataImage()  # a quorum without metadata


def metadata_of(image: MetadataImage) -> dict[str, Any]:
    partitions = image.partitions
    return {
        "offset": image.at.offset - 1,  # of the last record applied
        "topics": len(image.topics),
        "partitions": len(partitions),
        "under_replicated_partitions": len(partitions.rows_under_replicated()),
        "offline_partitions": len(partitions.rows_without_leader()),
        "active_brokers": sum(not broker.fenced for broker in image.brokers.values()),
        "fenced_brokers": sum(broker.fenced for broker in image.brokers.values()),
        "brokers": [
            {
                "id": broker.id,
                "epoch": broker.epoch,
                "fenced": broker.fenced,
                "in_controlled_shutdown": broker.in_controlled_shutdown,
                "rack": broker.rack,
            }
            for broker in sorted(image.brokers.values(), key=lambda broker: broker.id)
        ],
    }


def _known_metadata(node: NodeParts) -> dict[str, Any]:
    is_current = node.zk is None and _behind(node) is None
    return {**metadata_of(_image(node)), "is_current": is_current}


async def _current_metadata(node: NodeParts) -> Answer:
    """Reads ZooKeeper in its designs: there a broker may hear of a change late, or never."""
    if node.zk is None:
        return Answer.json(_known_metadata(node))
    read = await node.zk.read_cluster(node.driver, None, wait_seconds=_READING_SECONDS)
    image = _image(node) if read is None else read.image
    return Answer.json({**metadata_of(image), "is_current": read is not None})


async def _look(node: NodeParts, topics: tuple[str, ...]) -> tuple[Collection[str], MetadataImage]:
    """The names of topics, and metadata, as this node would tell them to a client now."""
    read = None
    if node.zk is not None and not node.zk.is_told:
        read = await node.zk.read_cluster(node.driver, topics, wait_seconds=_LOOKING_SECONDS)
    image = _image(node)
    return (image.topics.by_name, image) if read is None else (read.topics, read.image)


async def _topics(node: NodeParts) -> Answer:
    names, _ = await _look(node, ())
    return _behind(node) or Answer.json({"topics": sorted(names)})


def _behind(node: NodeParts) -> Answer | None:
    """A node that has just started says nothing before it knows as much as in its last life."""
    if node.broker is not None:
        has_caught_up = node.broker.cluster.is_published
    elif node.controller is not None:
        high_watermark = node.facts()["high_watermark"]
        has_caught_up = (
            high_watermark is not None and node.controller.image.at.offset >= high_watermark
        )
    else:
        has_caught_up = True  # a quorum without metadata
    if has_caught_up:
        return None
    return Answer.json({"error": "this node has not read yet what is committed"}, 503)


async def _topic(node: NodeParts, name: str) -> Answer:
    _, image = await _look(node, (name,))
    behind = _behind(node)
    if behind is not None:
        return behind
    topic = image.topic(name)
    if topic is None:
        return Answer.json({"error": f"no topic {name!r}"}, 404)
    return Answer.json(
        {
            "name": name,
            "topic_id": uuid_text(topic.id),
            "partitions": [
                {
                    "partition": index,
                    "leader": state.leader,
                    "leader_epoch": state.leader_epoch,
                    "partition_epoch": state.partition_epoch,
                    "replicas": list(state.replicas),
                    "isr": list(state.isr),
                    "elr": list(state.eligible_leader_replicas),
                    **_marks(node, topic, index, state.leader_epoch),
                }
                for index, state in image.partitions_of(topic.id)
            ],
        }
    )


def _marks(node: NodeParts, topic: TopicImage, index: int, leader_epoch: int) -> Mapping[str, int]:
    """Tells what a broker knows of its own replica."""
    if node.broker is None:
        return {}
    from quorumlab import broker_side

    return broker_side.replica_marks(node.broker.replicas, topic, index, leader_epoch)


# --- the ledger ------------------------------------------------------------------------------


def ledger(node: NodeParts) -> dict[str, int]:
    counts = node.driver.counts
    return {
        **({} if node.zk is None else node.zk.counts()),
        **rpc_counts(counts),
        "fsyncs": node.storage.fsyncs,
        "log.records": 0 if node.zk is not None else node.raft.replica.log.appended_records,
    }


def rpc_counts(counts: DriverCounts) -> dict[str, int]:
    traffic = counts.traffic
    return {
        **{f"rpc.sent.{camel_case(api)}": count for api, count in counts.sent.items()},
        **{f"rpc.received.{camel_case(api)}": of.received for api, of in counts.apis.items()},
        **_bytes("rpc.bytes_sent", traffic.sent_bytes),
        **_bytes("rpc.bytes_received", traffic.received_bytes),
    }


def _bytes(name: str, by_key: Mapping[int, int]) -> dict[str, int]:
    by_api = {f"{name}.{_title(key)}": count for key, count in by_key.items()}
    return {name: sum(by_key.values()), **by_api}


def _title(api_key: int) -> str:
    api = api_by_key(api_key)
    assert api is not None, api_key  # a frame of another is refused before it is counted
    return camel_case(api.name)


# --- what only tests ask for ----------------------------------------------------------------


_KEY_CHARACTERS_MAX = 200


def posts(node: NodeParts) -> Mapping[str, PostRoute]:
    """All that changes anything over HTTP."""
    return {"/v1/agent/register": lambda body: _register(node, body)}


async def _read_committed(node: NodeParts, query: Mapping[str, str]) -> Answer:
    if node.controller is None:
        return Answer.json({"error": "this node is not a controller"}, 404)
    if not node.config.flag("quorumlab.confirmed.reads.enable"):
        error = "this node serves no such reads: set quorumlab.confirmed.reads.enable=true"
        return Answer.json({"error": error}, 404)
    if not query.get("topic") or not query.get("config"):
        return Answer.json({"error": "say which: ?topic=T&config=K"}, 400)
    asked = ReadCommittedRequest(topic=query["topic"], config=query["config"])
    told = await node.driver.ask(asked)
    if told is None:
        return Answer.json({"error": "this node's disk has failed"}, 503)
    assert isinstance(told, ReadCommittedResponse), told
    match told.error:
        case ErrorCode.NONE:
            return Answer.json({"value": told.value, "offset": told.offset, "epoch": told.epoch})
        case ErrorCode.NOT_CONTROLLER:
            error = "this node is not the active controller"
            return Answer.json({"error": error, "leader_id": told.leader_id}, 409)
        case _:
            return Answer.json(
                {"error": "no majority has confirmed in time that this node leads"}, 503
            )


async def _register(node: NodeParts, body: bytes) -> Answer:
    if node.register is None:
        return Answer.json(
            {"error": "this node has no register: set quorumlab.application=register"}, 404
        )
    try:
        asked = parse_register(body)
    except ValueError as error:
        return Answer.json({"error": str(error)}, 400)
    told = await node.driver.ask(asked)
    if told is None:
        return Answer.json({"outcome": "info", "error": "this node's disk has failed"})
    assert isinstance(told, RegisterResponse), told
    return Answer.json(_described(asked, told))


def parse_register(body: bytes) -> RegisterRequest:
    """Raises ValueError with what is wrong."""
    try:
        asked = json.loads(body)
    except ValueError as error:
        raise ValueError(f"not JSON: {error}") from error
    if not isinstance(asked, dict):
        raise ValueError('not an object like {"f": "write", "key": "x", "value": 1}')
    f, key, value = asked.get("f"), asked.get("key"), asked.get("value")
    if not isinstance(key, str) or not 0 < len(key) <= _KEY_CHARACTERS_MAX:
        raise ValueError(f"key is {key!r:.100}, no text of 1 to {_KEY_CHARACTERS_MAX} characters")
    if f == "cas":
        if not isinstance(value, list) or len(value) != 2 or not all(map(_is_value, value)):
            raise ValueError(f"the value of a cas is {value!r:.100}, not [old, new]")
        return RegisterRequest(f="cas", key=key, old=value[0], value=value[1])
    if not _is_value(value):
        raise ValueError(f"value is {value!r:.100}, neither a whole number nor null")
    return RegisterRequest(f=str(f), key=key, value=value)


def _is_value(value: object) -> bool:
    return value is None or (type(value) is int and abs(value) < 1 << 63)


def _described(asked: RegisterRequest, told: RegisterResponse) -> dict[str, Any]:
    described: dict[str, Any] = {"outcome": told.outcome}
    if asked.f == "read" and told.outcome == "ok":
        described["value"] = told.value
    if told.has_seen:
        described["seen"] = told.seen
    if told.error is not None:
        described |= {"error": told.error, "leader_id": told.leader_id}
    return described
