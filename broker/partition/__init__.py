"""A replica of a partition has a log and a role; a leader has an ISR. Their rules are here."""
