"""Who uses a cluster: producers, readers, groups, and those who change it."""
