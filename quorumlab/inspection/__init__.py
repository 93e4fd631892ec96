"""Reading a metadata log, ours or Apache Kafka's: no lock is taken, and nothing is written."""
