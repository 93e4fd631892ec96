"""A simulated cluster: controllers, brokers and clients, and what must hold of them."""
