"""What all tests on Java share."""

from collections.abc import Iterator

import pytest

from spark.session import Settings

SETTINGS = Settings(master="local[2]", driver_mb=1024, seconds=300)


@pytest.fixture(scope="session", autouse=True)
def short_lived_java() -> Iterator[None]:
    """No test runs long enough for what Java's second compiler costs. Verifying Spark's classes is
    a fifth of what a session and one job take."""
    options = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
    unverified = "-XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JDK_JAVA_OPTIONS", f"{options} {unverified}")
        yield
