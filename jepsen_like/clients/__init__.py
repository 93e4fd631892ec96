"""Clients as pure cores: what to ask and when, for the simulator or for sockets alike."""
