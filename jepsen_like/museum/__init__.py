"""The museum of bugs: known failures of Apache Kafka, made executable, each with what mended it."""
