"""Consumer groups in which the coordinator assigns partitions (KIP-848): values in, values out."""
