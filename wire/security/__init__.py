"""Who speaks, and how it is shown: principals, TLS, SASL. What they may do is decided elsewhere."""
