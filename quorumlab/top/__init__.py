"""The live view of a cluster: what is read, how it is shown, and the terminal that shows it."""
