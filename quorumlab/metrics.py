"""/metrics: what a node counts, under the names that Kafka's JMX exporters give.

Source: Kafka's metric reference; names as the usual exporter rules make them
(`kafka_<domain>_<type>_<name>`, lower case).
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
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

__all__ = ["Facts", "expose"]

Facts = Callable[[], Mapping[str, Any]]  # the page that /v1/node shows


@dataclass(frozen=True, slots=True)
class _Gauge:
    name: str
    help: str
    path: tuple[str, ...]  # where in the node's facts the number stands


_CONTROLLER = "kafka_controller_kafkacontroller_"
_RAFT = "kafka_server_raft_metrics_"
_REPLICAS = "kafka_server_replicamanager_"
_REQUESTS = "kafka_network_requestmetrics_"

_GAUGES = (
    _Gauge(_CONTROLLER + "activebrokercount", "Unfenced brokers", ("metadata", "active_brokers")),
    _Gauge(_CONTROLLER + "fencedbrokercount", "Fenced brokers", ("metadata", "fenced_brokers")),
    _Gauge(_CONTROLLER + "globaltopiccount", "Topics", ("metadata", "topics")),
    _Gauge(_CONTROLLER + "globalpartitioncount", "Partitions", ("metadata", "partitions")),
    _Gauge(
        _CONTROLLER + "offlinepartitionscount",
        "Partitions without a leader",
        ("metadata", "offline_partitions"),
    ),
    _Gauge(
        _CONTROLLER + "lastappliedrecordoffset",
        "Offset of the last metadata record applied",
        ("metadata", "offset"),
    ),
    _Gauge(
        _CONTROLLER + "takeovertimems",
        "From this node's last election until it was the active controller, -1 never",
        ("take_over", "ms"),
    ),
    _Gauge(
        _CONTROLLER + "takeoverreplayedrecords",
        "Records that it had to apply for that, -1 never",
        ("take_over", "replayed_records"),
    ),
    _Gauge(_RAFT + "current_epoch", "Epoch of the quorum", ("quorum", "epoch")),
    _Gauge(_RAFT + "current_leader", "Leader of the quorum, -1 unknown", ("quorum", "leader_id")),
    _Gauge(_RAFT + "current_vote", "Whom this node voted for, -1 nobody", ("quorum", "voted_id")),
    _Gauge(_RAFT + "high_watermark", "What the quorum has committed", ("quorum", "high_watermark")),
    _Gauge(_RAFT + "log_end_offset", "End of the metadata log", ("quorum", "log_end_offset")),
    _Gauge(_REPLICAS + "partitioncount", "Replicas on this broker", ("broker", "partitions")),
    _Gauge(_REPLICAS + "leadercount", "Partitions led by this broker", ("broker", "leaders")),
    _Gauge(
        _REPLICAS + "underreplicatedpartitions",
        "Partitions led here whose ISR is smaller than their replicas",
        ("broker", "under_replicated"),
    ),
    _Gauge(
        _REPLICAS + "underminisrpartitioncount",
        "Partitions led here whose ISR is below min.insync.replicas",
        ("broker", "under_min_isr"),
    ),
    _Gauge(
        _REPLICAS + "atminisrpartitioncount",
        "Partitions led here whose ISR is exactly min.insync.replicas",
        ("broker", "at_min_isr"),
    ),
    _Gauge(
        _REPLICAS + "offlinereplicacount",
        "Replicas on this broker whose log is not open",
        ("broker", "offline_replicas"),
    ),
    _Gauge(
        "kafka_server_broker_metadata_metrics_last_applied_record_offset",
        "Offset of the last metadata record that this broker acts upon",
        ("broker", "metadata_offset"),
    ),
    _Gauge("kafka_server_kafkaserver_brokerstate", "3 is RUNNING", ("broker", "state_code")),
)


class _NodeCollector(Collector):
    def __init__(self, facts: Facts) -> None:
        self._facts = facts

    def collect(self) -> Iterator[Metric]:
        facts = self._facts()
        is_controller = "controller" in facts["roles"]
        for gauge in _GAUGES:
            if gauge.name.startswith(_CONTROLLER) and not is_controller:
                continue  # boards add these up: brokers would count everything again
            value = _look_up(facts, gauge.path)
            if value is not None:
                yield GaugeMetricFamily(gauge.name, gauge.help, value=float(value))
        if is_controller:
            yield _active(facts)
        yield _role(facts)
        yield from _requests(facts["driver"])


def _look_up(facts: Mapping[str, Any], path: Iterable[str]) -> Any:
    value: Any = facts
    for name in path:
        if not isinstance(value, Mapping) or name not in value:
            return None
        value = value[name]
    return -1 if value is None else value


def _active(facts: Mapping[str, Any]) -> Metric:
    return GaugeMetricFamily(
        _CONTROLLER + "activecontrollercount",
        "1 on the active controller",
        value=float(facts["quorum"]["role"] == "leader"),
    )


def _role(facts: Mapping[str, Any]) -> Metric:
    state = GaugeMetricFamily(_RAFT + "current_state", "Role in the quorum", labels=["state"])
    state.add_metric([facts["quorum"]["role"]], 1.0)
    return state


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


def expose(facts: Facts) -> Callable[[], bytes]:
    """A function that renders the metrics page; one registry a node, several in a process."""
    registry = CollectorRegistry()
    ProcessCollector(registry=registry)
    registry.register(_NodeCollector(facts))
    return lambda: generate_latest(registry)
