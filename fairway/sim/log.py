"""The events of a run: counted, hashed, and kept as text on request."""

from __future__ import annotations

import hashlib
from collections import Counter

from fairway.sim.time import START, Time


class Log:
    """The events of a run. Two runs are the same if their digests are."""

    def __init__(self, time: Time, *, keeps_lines: bool = False) -> None:
        self._time = time
        self._digest = hashlib.sha256()
        self._keeps_lines = keeps_lines
        self.lines: list[str] = []
        self.counts: Counter[str] = Counter()
        self.faults: Counter[str] = Counter()
        self.steps = 0
        self.violations: list[str] = []

    def step(self, what: str, text: str, body: bytes = b"") -> None:
        """Logs a write that is on disk, an action on a cluster, or a fault."""
        self.steps += 1
        self.counts[what] += 1
        self.note(what, text, body)

    def fault(self, kind: str, text: str) -> None:
        self.faults[kind] += 1
        self.step("fault", f"{kind}: {text}")

    def note(self, what: str, text: str, body: bytes = b"") -> None:
        """Logs something that deserves a line but is no step."""
        line = f"{self._time.now() - START:10.3f} {what:8} {text}"
        self._digest.update(line.encode())
        self._digest.update(body)
        if self._keeps_lines:
            self.lines.append(line)

    def report(self, sentence: str) -> None:
        if sentence not in self.violations:
            self.violations.append(sentence)
            self.note("BROKEN", sentence)

    @property
    def digest(self) -> str:
        return self._digest.hexdigest()[:16]
