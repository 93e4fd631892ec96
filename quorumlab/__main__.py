"""`python -m quorumlab` is the `quorumlab` command."""

import os
import sys

# Python has put the current directory first. Unless we were found there, what lies in it is the
# user's: a `broker.py` would be imported in the place of our package.
if not sys.flags.safe_path and sys.path[0] != os.path.dirname(os.path.dirname(__file__)):
    del sys.path[0]

from quorumlab.cli import main

if __name__ == "__main__":
    sys.exit(main())
