"""What all tests need, wherever they run.

Every property test: no deadline, since a wall clock judges the machine, and a line to replay. And
SIGINT means what it means at a terminal: a shell that starts something in the background lets it
ignore Ctrl-C, and so would all that is started from there.
"""

import signal

from hypothesis import settings

settings.register_profile("quorumlab", deadline=None, print_blob=True)
settings.load_profile("quorumlab")
signal.signal(signal.SIGINT, signal.default_int_handler)
