"""The simulator: the shipped cores on virtual time, with a faulty network and faulty disks."""
