"""When a checkpoint was made: its id is a UUID of version 6, which begins with the time."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime, timedelta

_EPOCH = datetime(1582, 10, 15, tzinfo=UTC)
"""UUIDs count tenths of microseconds from the first day of the Gregorian calendar."""


def time_of(checkpoint_id: str) -> datetime | None:
    """The moment that the id names, in UTC; None for an id of another kind."""
    try:
        id_ = uuid.UUID(checkpoint_id)
    except ValueError:
        return None
    if id_.version != 6:
        return None
    ticks = (id_.int >> 80) << 12 | (id_.int >> 64) & 0x0FFF
    return _EPOCH + timedelta(microseconds=ticks // 10)
