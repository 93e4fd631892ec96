"""Virtual time: the clock of a simulated world, clocks of nodes, and how a run ends."""
