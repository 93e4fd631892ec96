"""Clients of real clusters: one implementation a file, each says truthfully how an operation ended.

`fail` only where it is sure that nothing was done and nothing ever will be. Making a client needs
no cluster: a connection is opened by the first operation.
"""
