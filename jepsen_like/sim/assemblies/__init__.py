"""What is put together of a world: the quorum alone, whole clusters, the older designs."""
