"""What breaks a local cluster: a file for each family of faults."""
