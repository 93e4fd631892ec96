"""Every property test: no deadline, since a wall clock judges the machine, and a line to replay."""

from hypothesis import settings

settings.register_profile("quorumlab", deadline=None, print_blob=True)
settings.load_profile("quorumlab")
