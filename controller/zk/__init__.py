"""Controllers of the ZooKeeper designs: who is it, what it decides, and how brokers hear of it."""
