"""Bytes in, values out: Kafka's protocol, record batches and metadata records."""
