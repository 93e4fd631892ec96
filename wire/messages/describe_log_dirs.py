"""DescribeLogDirs (API key 35), as Kafka's message of version 5 has it."""

from dataclasses import dataclass

from wire.errors import ErrorCode

__all__ = [
    "DescribableLogDirTopic",
    "DescribeLogDirsPartition",
    "DescribeLogDirsRequest",
    "DescribeLogDirsResponse",
    "DescribeLogDirsResult",
    "DescribeLogDirsTopic",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribableLogDirTopic:
    topic: str
    partitions: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeLogDirsRequest:
    topics: tuple[DescribableLogDirTopic, ...] | None = None  # None: all


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeLogDirsPartition:
    partition_index: int
    partition_size: int  # bytes
    offset_lag: int = 0
    is_future_key: bool = False  # a copy that is on its way to another directory


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeLogDirsTopic:
    name: str
    partitions: tuple[DescribeLogDirsPartition, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeLogDirsResult:
    error_code: ErrorCode = ErrorCode.NONE
    log_dir: str  # its path
    topics: tuple[DescribeLogDirsTopic, ...] = ()
    total_bytes: int = -1  # of the volume; -1: unknown
    usable_bytes: int = -1
    is_cordoned: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeLogDirsResponse:
    throttle_time_ms: int = 0
    error_code: ErrorCode = ErrorCode.NONE
    results: tuple[DescribeLogDirsResult, ...] = ()
