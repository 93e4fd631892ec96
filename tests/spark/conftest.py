"""What all tests on Java share."""

from collections.abc import Iterator

import pytest

from spark.session import Settings

SETTINGS = Settings(master="local[2]", driver_mb=1024, seconds=300)


@pytest.fixture(scope="session", autouse=True)
def short_lived_java() -> Iterator[None]:
    """No test runs long enough for what Java's second compiler costs."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JDK_JAVA_OPTIONS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
        yield
