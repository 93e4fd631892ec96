"""The configuration of a controller in ZooKeeper mode."""

from dataclasses import dataclass

from wire.zk.designs import Design

__all__ = ["ZkControllerConfig"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ZkControllerConfig:
    node_id: int
    design: Design
    inter_broker_listener_name: str = "PLAINTEXT"
    ack_timeout_ms: int = 30_000  # of a command: Kafka's controller.socket.timeout.ms
    retry_backoff_ms: int = 300
    agent_wake_ms: int = 30_000  # of seed 000's reassignment agent
    delete_retry_ms: int = 5000  # of seed 001's task that tries pending deletions again
    balance_interval_ms: int = 0  # leader.imbalance.check.interval.seconds; 0: never
    is_unclean_allowed: bool | None = None  # None: as the design has it
    propagation_delay_ms: int = 0  # of ISR changes, so that those of some time are told together
