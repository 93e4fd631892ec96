"""quorumlab: Kafka-protocol clusters on a self-managed metadata quorum."""

__all__ = ["__version__"]

__version__ = "0.1.0"
