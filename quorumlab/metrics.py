"""/metrics: what a node counts, under the names that Kafka's JMX exporters give.

Source: Kafka's metric reference; names as the usual exporter rules make them
(`kafka_<domain>_<type>_<name>`, lower case).
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

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
    _Gauge(_RAFT + "current_epoch", "Epoch of the quorum", ("quorum", "epoch")),
    _Gauge(_RAFT + "current_leader", "Leader of the quorum, -1 unknown", ("quorum", "leader_id")),
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
    _Gauge("kafka_server_kafkaserver_brokerstate", "3 is RUNNING", ("broker", "state_code")),
)


class _NodeCollector(Collector):
    def __init__(self, facts: Facts) -> None:
        self._facts = facts

    def collect(self) -> Iterator[Metric]:
        facts = self._facts()
        for gauge in _GAUGES:
            value = _look_up(facts, gauge.path)
            if value is not None:
                yield GaugeMetricFamily(gauge.name, gauge.help, value=float(value))
        yield from _role(facts)
        yield from _requests(facts.get("driver", {}))


def _look_up(facts: Mapping[str, Any], path: Iterable[str]) -> Any:
    value: Any = facts
    for name in path:
        if not isinstance(value, Mapping) or name not in value:
            return None
        value = value[name]
    return -1 if value is None else value


def _role(facts: Mapping[str, Any]) -> Iterator[Metric]:
    quorum = facts["quorum"]
    active = GaugeMetricFamily(
        _CONTROLLER + "activecontrollercount",
        "1 on the active controller",
        value=float(quorum["role"] == "leader"),
    )
    yield active
    state = GaugeMetricFamily(_RAFT + "current_state", "Role in the quorum", labels=["state"])
    state.add_metric([quorum["role"]], 1.0)
    yield state


def _requests(driver: Mapping[str, Any]) -> Iterator[Metric]:
    requests = CounterMetricFamily(
        "kafka_network_requestmetrics_requests", "Requests received", labels=["request"]
    )
    for name, count in sorted(driver.get("requests", {}).items()):
        requests.add_metric([name], float(count))
    yield requests
    for name, text in (
        ("syncs", "Syncs of log files"),
        ("sync_seconds", "Time spent in syncs of log files"),
    ):
        if name in driver:
            yield CounterMetricFamily(f"quorumlab_storage_{name}", text, value=float(driver[name]))


def expose(facts: Facts) -> Callable[[], bytes]:
    """A function that renders the metrics page; one registry a node, several in a process."""
    registry = CollectorRegistry()
    ProcessCollector(registry=registry)
    registry.register(_NodeCollector(facts))
    return lambda: generate_latest(registry)
