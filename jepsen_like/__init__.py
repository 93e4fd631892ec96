"""Breaking clusters on purpose: the simulator, real processes, workloads and checkers."""
