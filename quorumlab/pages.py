"""The HTTP side of a node: health, metrics, and the node described in JSON.

    /livez                  200 while the process serves
    /readyz                 200 when the node does its work, else 503 with the reason
    /v1/ready               the same, for brokers as operators know it
    /v1/controller-ready    204 as leader or follower of the quorum, 503 else, 404 on brokers
    /metrics                Prometheus' text, Kafka's names
    /v1/node                the node
    /v1/milestones          how far it was when: see `quorum.milestones`
    /v1/ledger              what it has asked, sent, written and synced, in numbers
    /v1/topics              the names of all topics, as this node's metadata has them
    /v1/topics/NAME         a topic's partitions, as this node's metadata has them; 503, both of
                            them, while it reads what is committed
    /v1/agent/...           what only tests ask for: see `quorumlab.agent`

Source: the health contract that operators of Kafka on Kubernetes ask for.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from broker.describe import broker_counts, replica_marks
from broker.lifecycle import BrokerState
from controller.metadata.image import MetadataImage
from quorum.member import TakeOver
from quorumlab import agent
from quorumlab.ledger import ledger
from quorumlab.metrics import expose
from wire.http import Answer, Route
from wire.primitives import uuid_text

if TYPE_CHECKING:
    from quorumlab.node import Node

__all__ = ["describe_node", "routes"]

_METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8"


def routes(node: "Node") -> Mapping[str, Route]:
    metrics = expose(lambda: describe_node(node))
    return {
        **agent.routes(node),
        "/livez": lambda _: Answer(body=b"ok"),
        "/readyz": lambda _: _readiness(node),
        "/v1/ready": lambda _: _readiness(node),
        "/v1/controller-ready": lambda _: _controller_readiness(node),
        "/metrics": lambda _: Answer(content_type=_METRICS_TYPE, body=metrics()),
        "/v1/node": lambda _: Answer.json(describe_node(node)),
        "/v1/milestones": lambda _: Answer.json(node.milestones.describe()),
        "/v1/ledger": lambda _: Answer.json({"counts": ledger(node)}),
        "/v1/topics": lambda _: _topics(node),
        "/v1/topics/{name}": lambda parameters: _topic(node, parameters["name"]),
    }


def _readiness(node: "Node") -> Answer:
    reason = node.why_not_ready()
    return Answer.json({"ready": True}) if reason is None else Answer.json({"error": reason}, 503)


def _controller_readiness(node: "Node") -> Answer:
    if node.controller is None:
        return Answer.json({"error": "this node is not a controller"}, 404)
    if node.is_in_quorum:
        return Answer(status=204)
    role = node.facts()["role"]
    return Answer.json({"error": f"controller not ready, current raft state: {role}"}, 503)


def describe_node(node: "Node") -> dict[str, Any]:
    """Keys are added, never changed."""
    described: dict[str, Any] = {
        "node_id": node.config.node_id,
        "roles": sorted(node.config.roles),
        "quorum": node.facts(),
        "metadata": _metadata(_image(node)),
        "driver": node.driver.counts.describe(),
    }
    if node.controller is not None:
        described["take_over"] = _take_over(node.take_over)
    if node.broker is not None:
        described["broker"] = _broker(node)
    return described


def _take_over(last: TakeOver | None) -> dict[str, int | None]:
    return {
        "epoch": None if last is None else last.epoch,
        "ms": None if last is None else last.took_ms,
        "replayed_records": None if last is None else last.replayed_records,
    }


def _broker(node: "Node") -> dict[str, Any]:
    broker = node.broker
    assert broker is not None
    counts = broker_counts(broker)
    state = broker.lifecycle.state
    return {
        "state": "running" if state is BrokerState.RUNNING else state.name.lower(),
        "state_code": state.value,
        "broker_epoch": broker.broker_epoch,
        "metadata_offset": broker.metadata.published_offset,
        "partitions": counts["PartitionCount"],
        "leaders": counts["LeaderCount"],
        "under_replicated": counts["UnderReplicatedPartitions"],
        "under_min_isr": counts["UnderMinIsrPartitionCount"],
        "at_min_isr": counts["AtMinIsrPartitionCount"],
        "offline_replicas": counts["OfflineReplicaCount"],
    }


def _image(node: "Node") -> MetadataImage:
    """What this node knows to be committed."""
    if node.controller is not None:
        return node.controller.image
    if node.broker is not None:
        return node.broker.cluster.image
    return MetadataImage()  # a quorum without metadata


def _metadata(image: MetadataImage) -> dict[str, Any]:
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


def _topics(node: "Node") -> Answer:
    return _behind(node) or Answer.json({"topics": sorted(_image(node).topics.by_name)})


def _behind(node: "Node") -> Answer | None:
    """Whoever has just started says nothing before it knows as much as in its last life."""
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


def _topic(node: "Node", name: str) -> Answer:
    behind = _behind(node)
    if behind is not None:
        return behind
    image, broker = _image(node), node.broker
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
                    **replica_marks(broker, topic, index, state.leader_epoch),
                }
                for index, state in image.partitions_of(topic.id)
            ],
        }
    )
