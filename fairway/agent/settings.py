"""How an agent behaves, as its fleet and whoever runs it say."""

from __future__ import annotations

from dataclasses import dataclass

from fairway.api.fleet import Health


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentSettings:
    """Times and rates."""

    heartbeat_seconds: float = 10.0
    deletions_per_second: float = 10.0
    report_seconds: float = 0.05  # at most one report in that time; looks wait no longer either
    lasting_seconds: float = 30.0  # states that last so long are told in the work's own status
    cluster_seconds: float = 5.0  # at most one change of the cluster's status in that time
    drift_seconds: float = 240.0  # after which a work is applied again, whatever happened to it
    retry_seconds: float = 1.0  # after the driver failed; each next failure doubles it
    retry_seconds_max: float = 60.0
    width: int = 16  # works that are touched at a time

    @classmethod
    def of(cls, health: Health) -> AgentSettings:
        """The settings of a fleet."""
        return cls(
            heartbeat_seconds=float(health.heartbeat_seconds),
            deletions_per_second=float(health.deletions_per_second),
        )


# Who waits for just as long as they were told finds one, however the sums were rounded.
_ALMOST_ONE = 1.0 - 1e-6


class Rate:
    """So many a second, and no more than one second's worth at once."""

    def __init__(self) -> None:
        self._left = 0.0
        self._at: float | None = None

    def take(self, per_second: float, now: float) -> float:
        """Takes one; else says after how many seconds there may be one."""
        since = now - self._at if self._at is not None else 1.0
        most = max(1.0, per_second)
        self._left = min(most, self._left + max(0.0, since) * per_second)
        self._at = now
        if self._left >= _ALMOST_ONE:
            self._left -= 1.0
            return 0.0
        return (1.0 - self._left) / per_second
