"""Ids beside those of Kafka's nodes, where senders and receivers of messages are named by id."""

__all__ = ["CLIENTS", "FIRST_ZOOKEEPER"]

CLIENTS = -1  # every client, whichever it is
FIRST_ZOOKEEPER = 201  # ZooKeeper's servers are numbered from here on, apart from brokers
