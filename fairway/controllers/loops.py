"""Where loops used to be; see `fairway.loops`."""

from fairway.loops import Alarm, Loop

__all__ = ["Alarm", "Loop"]
