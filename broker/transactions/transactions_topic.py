"""Coordinators of transactions keep where each stands in the topic `__transaction_state`.

Source: Kafka's TransactionStateManager (transactionTopicConfigs).
"""

from broker.config import TransactionConfig
from wire.messages.topics import CreatableTopic, CreatableTopicConfig

__all__ = ["TRANSACTIONS_TOPIC", "transactions_topic"]

TRANSACTIONS_TOPIC = "__transaction_state"


def transactions_topic(config: TransactionConfig) -> CreatableTopic:
    configs = {
        "cleanup.policy": "compact",
        "compression.type": "uncompressed",
        "min.insync.replicas": str(config.topic_min_isr),
        "segment.bytes": str(config.topic_segment_bytes),
        "unclean.leader.election.enable": "false",
    }
    return CreatableTopic(
        name=TRANSACTIONS_TOPIC,
        num_partitions=config.topic_num_partitions,
        replication_factor=config.topic_replication_factor,
        configs=tuple(CreatableTopicConfig(name=key, value=configs[key]) for key in configs),
    )
