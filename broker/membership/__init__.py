"""A broker belongs to a cluster: it registers, sends heartbeats and follows the metadata log."""
