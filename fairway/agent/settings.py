"""Settings of an agent, from its fleet and from the process that runs it."""

from __future__ import annotations

from dataclasses import dataclass

from fairway.api.fleet import Health


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentSettings:
    """Times and rates."""

    heartbeat_seconds: float = 10.0
    deletions_per_second: float = 10.0
    report_seconds: float = 0.05  # between reports; also the longest pause between looks
    lasting_seconds: float = 30.0  # a state that lasts this long is written to the work's status
    cluster_seconds: float = 5.0  # between writes of the cluster's status
    drift_seconds: float = 240.0  # after which a work is applied again, whether it drifted or not
    retry_seconds: float = 1.0  # after the driver failed; doubles with each further failure
    retry_seconds_max: float = 60.0
    width: int = 16  # works that are reconciled concurrently

    @classmethod
    def of(cls, health: Health) -> AgentSettings:
        """The settings of a fleet."""
        return cls(
            heartbeat_seconds=float(health.heartbeat_seconds),
            deletions_per_second=float(health.deletions_per_second),
        )


# A caller that waits exactly as long as `take` said then gets one, despite rounding.
_ALMOST_ONE = 1.0 - 1e-6


class Rate:
    """A token bucket: a rate per second, with a burst of one second's worth."""

    def __init__(self) -> None:
        self._left = 0.0
        self._at: float | None = None

    def take(self, per_second: float, now: float) -> float:
        """Takes one and returns 0; otherwise returns the seconds until one is available."""
        since = now - self._at if self._at is not None else 1.0
        most = max(1.0, per_second)
        self._left = min(most, self._left + max(0.0, since) * per_second)
        self._at = now
        if self._left >= _ALMOST_ONE:
            self._left -= 1.0
            return 0.0
        return (1.0 - self._left) / per_second
