"""The live page of a node: what `top` shows, in a browser, with the past of the metadata log."""
