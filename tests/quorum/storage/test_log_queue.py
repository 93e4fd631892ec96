"""What may begin on one log, and when."""

from quorum.core.effects import Token
from quorum.log.files.log_queue import LogQueue
from quorum.log.files.sync_pace import SyncPace


def test_log_that_has_failed_is_not_synced() -> None:
    queue = LogQueue(log="t-0", pace=SyncPace(0))
    queue.want_sync(Token("t", 1))
    assert queue.may_sync()
    queue.fail()
    assert not queue.may_sync()
