"""What a controller of ZooKeeper mode is told when it starts, and who may act for its cluster.

AlterIsr, LeaderAndIsr, StopReplica and UpdateMetadata want CLUSTER_ACTION. Nobody is authenticated
here. Every connection is User:ANONYMOUS, as with Kafka on a PLAINTEXT listener, and may act for the
cluster if `super.users` names that user, or if no authorizer is configured.

Source: KIP-497 (seed 003), "a new AlterIsr API which requires CLUSTER_ACTION permission (similar to
other InterBroker APIs such as LeaderAndIsr)".
"""

from dataclasses import dataclass

from wire.zk.designs import Design

__all__ = ["ANONYMOUS", "EVERYBODY", "Authorizer", "ZkControllerConfig"]

ANONYMOUS = "User:ANONYMOUS"


@dataclass(frozen=True, slots=True, kw_only=True)
class Authorizer:
    super_users: tuple[str, ...]

    @classmethod
    def of(cls, class_name: str, super_users: str) -> "Authorizer":
        """As `authorizer.class.name` and `super.users` of server.properties say."""
        if not class_name:
            return EVERYBODY
        named = (each.strip() for each in super_users.split(";"))
        return cls(super_users=tuple(each for each in named if each))

    def allows_cluster_action(self, principal: str = ANONYMOUS) -> bool:
        return principal in self.super_users


EVERYBODY = Authorizer(super_users=(ANONYMOUS,))


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
    authorizer: Authorizer = EVERYBODY
    propagation_delay_ms: int = 0  # of ISR changes, so that those of some time are told together
