"""A coordinator is a replicated state machine on a partition: what all kinds of them share."""
