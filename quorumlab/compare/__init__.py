"""The designs side by side: one fault, one set of partitions, every way to keep the metadata."""
