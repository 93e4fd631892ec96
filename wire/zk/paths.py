"""Paths of the nodes in ZooKeeper, design by design. Names of topics are not escaped.

Kafka's own layout (`zk-redesign`, `zk-kip497`) is that of nodes written by Apache Kafka 3.9; that
of `zk-v3` is seed 000's; that of `zk-v1` and `zk-v2` is seed 002's, with the place of the epoch
reconstructed. Seed 000 deletes `/brokers/partitions_reassigned/[topic-part]` in F.3.2.6: a leftover
of V2, what it created lies in `/admin/partitions_reassigned`.
"""

# --- all designs ----------------------------------------------------------------------------

BROKER_IDS = "/brokers/ids"
TOPICS = "/brokers/topics"
CLUSTER_ID = "/cluster/id"
CONFIG_CHANGES = "/config/changes"
LATEST_PRODUCER_ID_BLOCK = "/latest_producer_id_block"
DELETE_TOPICS = "/admin/delete_topics"

_ROOTS = (
    "/admin",
    DELETE_TOPICS,
    "/brokers",
    BROKER_IDS,
    TOPICS,
    "/cluster",
    "/config",
    "/config/brokers",
    CONFIG_CHANGES,
    "/config/topics",
)


def broker(broker_id: int) -> str:
    return f"{BROKER_IDS}/{broker_id}"


def topic(name: str) -> str:
    return f"{TOPICS}/{name}"


def config(entity_type: str, name: str) -> str:
    """`entity_type` is one of topics and brokers; the name `<default>` stands for all of them."""
    return f"/config/{entity_type}/{name}"


def config_changes_prefix() -> str:
    return f"{CONFIG_CHANGES}/config_change_"


def parent(path: str) -> str:
    return path.rpartition("/")[0] or "/"


def parents(path: str) -> tuple[str, ...]:
    """Every node that must exist before `path` can be created, from the root's child down."""
    parts = path.split("/")[1:-1]
    return tuple("/" + "/".join(parts[: count + 1]) for count in range(len(parts)))


def last_name(path: str) -> str:
    return path.rpartition("/")[2]


CONTROLLER = "/controller"
CONTROLLER_EPOCH = "/controller_epoch"


# --- zk-redesign, zk-kip497: Kafka's layout -------------------------------------------------

ISR_CHANGES = "/isr_change_notification"
REASSIGN_PARTITIONS = "/admin/reassign_partitions"
PREFERRED_REPLICA_ELECTION = "/admin/preferred_replica_election"

KAFKA_ROOTS = (*_ROOTS, ISR_CHANGES, LATEST_PRODUCER_ID_BLOCK)


def isr_changes_prefix() -> str:
    return f"{ISR_CHANGES}/isr_change_"


def partition_state(name: str, partition: int) -> str:
    return f"{TOPICS}/{name}/partitions/{partition}/state"


# --- zk-v3 ----------------------------------------------------------------------------------

PARTITIONS_REASSIGNED = "/admin/partitions_reassigned"
PARTITIONS_ADD = "/admin/partitions_add"
PARTITIONS_REMOVE = "/admin/partitions_remove"

V3_ROOTS = (
    *_ROOTS,
    LATEST_PRODUCER_ID_BLOCK,
    PARTITIONS_ADD,
    PARTITIONS_REASSIGNED,
    PARTITIONS_REMOVE,
)


def partition_leader_and_isr(name: str, partition: int) -> str:
    return f"{TOPICS}/{name}/{partition}/leaderAndISR"


def partition_under(root: str, name: str, partition: int) -> str:
    """`root` is one of PARTITIONS_REASSIGNED, PARTITIONS_ADD and PARTITIONS_REMOVE."""
    return f"{root}/{name}/{partition}"


# --- zk-v1, zk-v2 ---------------------------------------------------------------------------

V2_PARTITIONS_REASSIGNED = "/brokers/partitions_reassigned"
STATE_QUEUES = "/brokers/state"

V2_ROOTS = (*_ROOTS, LATEST_PRODUCER_ID_BLOCK, STATE_QUEUES, V2_PARTITIONS_REASSIGNED)


def partition_leader(name: str, partition: int) -> str:
    """Ephemeral: it goes with its leader."""
    return f"{TOPICS}/{name}/{partition}/leader"


def partition_isr(name: str, partition: int) -> str:
    """The in-sync replicas, and the epoch, which must outlive the leader's node."""
    return f"{TOPICS}/{name}/{partition}/ISR"


def partition_replicas(name: str, partition: int) -> str:
    return f"{TOPICS}/{name}/{partition}/replicas"


def state_queue(broker_id: int) -> str:
    return f"{STATE_QUEUES}/{broker_id}"


def state_queue_prefix(broker_id: int) -> str:
    return f"{STATE_QUEUES}/{broker_id}/request_"


# --- back -----------------------------------------------------------------------------------


def partition_of(path: str) -> tuple[str, int] | None:
    """The topic and partition of any path that names one; None if it names none."""
    parts = path.split("/")[1:]
    match parts:
        case ["brokers", "topics", name, "partitions", number, *_]:
            pass
        case ["brokers", "topics", name, number, *_]:
            pass
        case [_, "partitions_reassigned" | "partitions_add" | "partitions_remove", name, number]:
            pass
        case _:
            return None
    return (name, int(number)) if number.isdecimal() else None
