"""One replica of a partition: its log, its role, its ISR, its high watermark, and their rules."""
