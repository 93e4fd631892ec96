"""The follower side of replication: fetching from the leaders of the partitions held here."""
