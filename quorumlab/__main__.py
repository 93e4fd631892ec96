"""`python -m quorumlab` is the `quorumlab` command."""

import sys

from quorumlab.cli import main

if __name__ == "__main__":
    sys.exit(main())
