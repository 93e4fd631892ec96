"""Session, procedures and effects of the designs that keep their metadata in ZooKeeper."""
