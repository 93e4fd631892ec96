"""What all parts of a broker share: its configuration, the cluster as it sees it, its disks."""
