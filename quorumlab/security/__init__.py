"""How a node is secured, as its settings say: TLS, SASL, users, and its door."""
