"""What a log is: leader epochs, the rules of a fetch, snapshots; `files` puts one on disk."""
