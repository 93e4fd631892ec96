"""What every play has: machines, links, messages, an account, a story, and commands for them."""
