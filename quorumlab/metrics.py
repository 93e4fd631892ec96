"""/metrics: what a node counts, under the names that Kafka's JMX exporters give.

Source: Kafka's metric reference; names as the usual exporter rules make them
(`kafka_<domain>_<type>_<name>`, lower case).
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    Metric,
    SummaryMetricFamily,
)
from prometheus_client.registry import Collector

from wire.api_table import camel_case

__all__ = ["expose"]

Facts = Callable[[], Mapping[str, Any]]  # the page that /v1/node shows

_CONTROLLER = "kafka_controller_kafkacontroller_"
_RAFT = "kafka_server_raft_metrics_"
_REPLICAS = "kafka_server_replicamanager_"
_REQUESTS = "kafka_network_requestmetrics_"
_APPLIED = "kafka_server_broker_metadata_metrics_last_applied_record_offset"

# A number of the node's facts, by its part and name; the name of its gauge; and what it is.
_GAUGES: Sequence[list[str]] = [
    line.split(maxsplit=2)
    for line in f"""
    metadata.active_brokers {_CONTROLLER}activebrokercount Unfenced brokers
    metadata.fenced_brokers {_CONTROLLER}fencedbrokercount Fenced brokers
    metadata.topics {_CONTROLLER}globaltopiccount Topics
    metadata.partitions {_CONTROLLER}globalpartitioncount Partitions
    metadata.offline_partitions {_CONTROLLER}offlinepartitionscount Partitions without a leader
    metadata.offset {_CONTROLLER}lastappliedrecordoffset Offset of the last metadata record applied
    take_over.ms {_CONTROLLER}takeovertimems \
      From this node's last election until it was the active controller, -1 never
    take_over.replayed_records {_CONTROLLER}takeoverreplayedrecords \
      Records that it had to apply for that, -1 never
    quorum.epoch {_RAFT}current_epoch Epoch of the quorum
    quorum.leader_id {_RAFT}current_leader Leader of the quorum, -1 unknown
    quorum.voted_id {_RAFT}current_vote Whom this node voted for, -1 nobody
    quorum.high_watermark {_RAFT}high_watermark What the quorum has committed
    quorum.log_end_offset {_RAFT}log_end_offset End of the metadata log
    broker.partitions {_REPLICAS}partitioncount Replicas on this broker
    broker.leaders {_REPLICAS}leadercount Partitions led by this broker
    broker.under_replicated {_REPLICAS}underreplicatedpartitions \
      Partitions led here whose ISR is smaller than their replicas
    broker.under_min_isr {_REPLICAS}underminisrpartitioncount \
      Partitions led here whose ISR is below min.insync.replicas
    broker.at_min_isr {_REPLICAS}atminisrpartitioncount \
      Partitions led here whose ISR is exactly min.insync.replicas
    broker.offline_replicas {_REPLICAS}offlinereplicacount \
      Replicas on this broker whose log is not open
    broker.metadata_offset {_APPLIED} Offset of the last metadata record that this broker acts upon
    broker.state_code kafka_server_kafkaserver_brokerstate 3 is RUNNING""".strip().splitlines()
]


class _NodeCollector(Collector):
    def __init__(self, facts: Facts) -> None:
        self._facts = facts

    def collect(self) -> Iterator[Metric]:
        facts = self._facts()
        is_controller = "controller" in facts["roles"]
        for of_part, name, what in _GAUGES:
            part, _, number = of_part.partition(".")
            if name.startswith(_CONTROLLER) and not is_controller:
                continue  # boards add these up: brokers would count everything again
            if number in facts.get(part, ()):
                value = facts[part][number]
                yield GaugeMetricFamily(name, what, value=-1.0 if value is None else float(value))
        role = facts["quorum"]["role"]
        if is_controller:
            name, what = _CONTROLLER + "activecontrollercount", "1 on the active controller"
            yield GaugeMetricFamily(name, what, value=float(role == "leader"))
        state = GaugeMetricFamily(_RAFT + "current_state", "Role in the quorum", labels=["state"])
        state.add_metric([role], 1.0)
        yield state
        yield from _requests(facts["driver"])
        yield from _throttling(facts.get("throttled", {}))


def _requests(driver: Mapping[str, Any]) -> Iterator[Metric]:
    received = CounterMetricFamily(_REQUESTS + "requests", "Requests received", labels=["request"])
    took = SummaryMetricFamily(
        _REQUESTS + "totaltimems", "From a request to its answer", labels=["request"]
    )
    for name, count in sorted(driver["requests"].items()):
        label = [camel_case(name)]
        received.add_metric(label, float(count))
        took.add_metric(label, driver["answered"][name], driver["request_seconds"][name] * 1000)
    yield received
    yield took
    for name, text in (
        ("syncs", "Syncs of log files"),
        ("sync_seconds", "Time spent in syncs of log files"),
        ("syncs_inline", "Syncs in the thread that serves requests"),
        ("syncs_inline_too_slow", "Syncs that stopped this node for longer than they may"),
    ):
        yield CounterMetricFamily(f"quorumlab_storage_{name}", text, value=float(driver[name]))


def _throttling(throttled: Mapping[str, Any]) -> Iterator[Metric]:
    """Kafka has an average for each client; clients choose their names, so here it is for all."""
    for kind, of_kind in throttled.items():
        name = f"kafka_server_{kind.replace('_', '')}_throttle_time_ms"
        text = f"How long clients had to wait for their quota: {kind.replace('_', ' ')}"
        yield SummaryMetricFamily(name, text, of_kind["count"], of_kind["ms"])


def expose(facts: Facts) -> Callable[[], bytes]:
    """A function that renders the metrics page; one registry a node, several in a process."""
    registry = CollectorRegistry()
    ProcessCollector(registry=registry)
    registry.register(_NodeCollector(facts))
    return lambda: generate_latest(registry)
