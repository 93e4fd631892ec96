"""Who may do what: the authorizer, its rules for each API, and the door that requests pass."""
