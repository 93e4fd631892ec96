"""quorumlab: Kafka-protocol clusters on a self-managed metadata quorum."""
