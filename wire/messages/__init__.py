"""One module an API: its request and its response in the canonical form that cores speak.

A canonical message has the fields of the newest version served, durations in milliseconds with the
suffix `_ms`, plain ints, and ZERO_UUID where a uuid is absent. `wire.canonical` maps every
version of the protocol to and from it.
"""
