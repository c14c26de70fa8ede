"""What an agent reports to its hub: work states and capacity in reports, and statuses of works.

States are reported at once. The status of a work is written only when its state has lasted, when it
failed, or when the result of a rule of its manifests changed: a short work costs no such write.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from operator import is_
from typing import NamedTuple

from msgspec.structs import replace

from fairway.agent.drivers.interface import WorkSeen
from fairway.agent.feedback import Feedback, feedback_of, has_rules
from fairway.agent.hub import Hub
from fairway.agent.memory import Kept, Memory
from fairway.agent.reports import Reports
from fairway.agent.settings import AgentSettings
from fairway.agent.sight import Sight
from fairway.agent.states import FindKind, Told, state_of
from fairway.api.amounts import Quantity
from fairway.api.meta import Condition
from fairway.api.report import WorkState
from fairway.api.work import Work, WorkStatus
from fairway.clock import Clock
from fairway.kinds.device_claims import devices_of_work, with_devices
from fairway.loops import Alarm, Loop

REFUSED = "Accepted"  # the condition that says whether the agent accepts the hub's version
_ENDED = ("Succeeded", "Failed")


class _Asked(NamedTuple):
    """What the state of a work depends on; if all are the same objects, so is the state."""

    kept: Kept
    seen: WorkSeen | None
    last_state: WorkState | None
    fault: str


class Teller:
    """Keeps the states of works, and decides which to write."""

    def __init__(
        self,
        memory: Memory,
        sight: Sight,
        hub: Hub,
        *,
        find_kind: FindKind,
        clock: Clock,
        settings: AgentSettings,
    ) -> None:
        self.settings = settings
        self.states: dict[str, WorkState] = {}
        self.reports = Reports(hub.cluster, memory.epoch)
        self.to_report = Alarm(clock)
        self.statuses: Loop[str] = Loop("work statuses", self._write_status, clock=clock, width=4)
        self._memory = memory
        self._sight = sight
        self._hub = hub
        self._find_kind = find_kind
        self._clock = clock
        # The inputs that the state of a work was last computed from, and that state.
        self._known: dict[str, tuple[_Asked, WorkState]] = {}
        self._since: dict[str, float] = {}
        self._faults: dict[str, str] = {}
        self._refused: dict[str, tuple[str, str, int]] = {}  # reason, message and generation
        self._feedback: dict[str, Feedback] = {}
        self._offered: dict[str, Work] = {}
        self._told: dict[str, WorkStatus] = {}
        self._requests: dict[str, tuple[Work, dict[str, Mapping[str, Quantity]]]] = {}

    def offer(self, name: str, work: Work | None) -> None:
        """Takes the work as the hub has it now."""
        if work is None:
            self._offered.pop(name, None)
            self._told.pop(name, None)
            self._refused.pop(name, None)
        else:
            # A hub that was restored has an earlier status than it was told.
            if self._told.get(name, work.status) != work.status:
                self.statuses.mark(name)
            self._offered[name] = work
            self._told[name] = work.status

    def refuse(self, name: str, reason: str, message: str = "") -> None:
        """Reports that a work is refused, once for each reason and generation."""
        refusal = (reason, message, self._offered[name].metadata.generation)
        if self._refused.get(name) != refusal:
            self._refused[name] = refusal
            self.statuses.mark(name)

    def accept(self, name: str) -> None:
        self._refused.pop(name, None)

    def fault(self, name: str, message: str) -> None:
        """Records the last fault of the driver with a work; an empty message clears it."""
        if message:
            self._faults[name] = message
        else:
            self._faults.pop(name, None)

    def is_frozen(self, name: str) -> bool:
        feedback = self._feedback.get(name)
        return feedback is not None and feedback.is_complete

    def look(self, names: Iterable[str]) -> list[str]:
        """Updates the states of works; returns those that have just ended.

        An end must be remembered before it is reported.
        """
        ended = []
        changed = []
        for name in names:
            kept = self._memory.works.get(name)
            if kept is None:
                self._drop(name)
            else:
                state = self._state(kept, name)
                if state.phase in _ENDED and kept.ended is None:
                    ended.append(name)
                    continue
                self._take(name, kept, state)
            changed.append(name)
        observation = self._sight.observation
        if observation is not None:
            self.reports.take(observation, changed, self.states, self.requests)
            if self.reports.is_dirty:
                self.to_report.mark()
        return ended

    def final_state(self, name: str) -> WorkState | None:
        """How a work has ended, if it has ended and that is not remembered yet."""
        kept = self._memory.works.get(name)
        if kept is None or kept.ended is not None:
            return None
        state = self._state(kept, name)
        return state if state.phase in _ENDED else None

    def requests(self, work: str, pod_set: str) -> Mapping[str, Quantity]:
        """What one pod of a work's pod set requests."""
        kept = self._memory.works.get(work)
        if kept is None:
            return {}
        known, result = self._requests.get(work, (None, {}))
        if known is not kept.work:
            result = {}
            for manifest in kept.work.spec.manifests:
                kind = self._find_kind(manifest.object)
                if kind is not None:
                    sets = kind.pod_sets(manifest.object)
                    result.update({set_.name: set_.requests for set_ in sets})
            manifests = [manifest.object for manifest in kept.work.spec.manifests]
            for name, devices in devices_of_work(manifests, self._find_kind).items():
                result[name] = with_devices(result.get(name, {}), devices)
            self._requests[work] = (kept.work, result)
        return result.get(pod_set, {})

    def _state(self, kept: Kept, name: str) -> WorkState:
        told_state = Told(state=self.states.get(name), fault=self._faults.get(name, ""))
        seen = self._sight.work(name)
        asked = _Asked(kept, seen, told_state.state, told_state.fault)
        known = self._known.get(name)
        if known is not None and all(map(is_, known[0], asked)):
            return known[1]
        state = state_of(kept, seen, told_state, find_kind=self._find_kind, now=self._clock.now())
        self._known[name] = (asked, state)
        return state

    def _take(self, name: str, kept: Kept, state: WorkState) -> None:
        now = self._clock.now()
        if has_rules(kept.work):
            self._follow_rules(name, kept.work, self._sight.work(name), now)
        before = self.states.get(name)
        if state == before:
            return
        self.states[name] = state
        if before is None or before.phase != state.phase or before.attempt != state.attempt:
            self._since[name] = now
        if state.phase == "Failed":
            self.statuses.mark(name)
        else:
            self.statuses.mark_at(name, now + self.settings.lasting_seconds)

    def _follow_rules(self, name: str, work: Work, seen: WorkSeen | None, now: float) -> None:
        before = self._feedback.get(name, Feedback())
        feedback = feedback_of(work, seen, before, now=now)
        self._feedback[name] = feedback
        if feedback.by_rules() != before.by_rules():
            self.statuses.mark(name)

    def _drop(self, name: str) -> None:
        for table in (
            self.states,
            self._since,
            self._faults,
            self._feedback,
            self._requests,
            self._known,
        ):
            table.pop(name, None)

    # Statuses of works.

    async def _write_status(self, name: str) -> float | None:
        offered = self._offered.get(name)
        kept, state = self._memory.works.get(name), self.states.get(name)
        if offered is None:
            return None
        now = self._clock.now()
        if name not in self._refused:
            if kept is None or state is None or not self._is_worth(name, kept.work, state):
                return None
            due = self._since[name] + self.settings.lasting_seconds
            if now < due and not self._is_urgent(name, state):
                return due
        status = self._status(name, offered, kept, state, now)
        if replace(status, agent_epoch=0) == replace(self._told[name], agent_epoch=0):
            return None
        await self._hub.write_work_status(name, status)
        self._told[name] = status
        return None

    def _is_worth(self, name: str, work: Work, state: WorkState) -> bool:
        """Whether to write a status.

        Success is only in the report, unless the work has rules or an earlier status.
        """
        return state.phase != "Succeeded" or has_rules(work) or self._told[name] != WorkStatus()

    def _is_urgent(self, name: str, state: WorkState) -> bool:
        return state.phase == "Failed" or name in self._feedback

    def _status(
        self,
        name: str,
        offered: Work,
        kept: Kept | None,
        state: WorkState | None,
        now: float,
    ) -> WorkStatus:
        last_status = self._told[name]
        generation = offered.metadata.generation
        status = WorkStatus(
            observed_generation=generation, term=self._memory.term, agent_epoch=self._memory.epoch
        )
        conditions: tuple[Condition, ...] = ()
        if kept is not None and state is not None:
            seen = self._sight.work(name)
            before = Feedback(manifests=last_status.manifests, conditions=last_status.conditions)
            feedback = self._feedback.get(name) or feedback_of(kept.work, seen, before, now=now)
            conditions = feedback.conditions
            saved = seen.checkpointed_at if seen is not None else None
            status = replace(
                status,
                attempt=state.attempt,
                phase=state.phase,
                reason=state.reason,
                message=state.message,
                exit_code=state.exit_code,
                started_at=_whole(state.started_at),
                finished_at=_whole(state.finished_at),
                checkpointed_at=_whole(_moment(saved)) or last_status.checkpointed_at,
                gone_at=(last_status.gone_at or _whole(_moment(now)))
                if state.phase == "Gone"
                else None,
                pod_sets=state.pods,
                succeeded_tasks=state.succeeded_tasks,
                failed_tasks=state.failed_tasks,
                manifests=feedback.manifests,
            )
        refusal = self._refusal(name, last_status, now, generation)
        return replace(status, conditions=(*conditions, *refusal))

    def _refusal(
        self, name: str, status: WorkStatus, now: float, generation: int
    ) -> tuple[Condition, ...]:
        if name not in self._refused:
            return ()
        reason, message, _ = self._refused[name]
        since = next(
            (
                condition.last_transition_time
                for condition in status.conditions
                if condition.type == REFUSED
            ),
            datetime.fromtimestamp(int(now), UTC),
        )
        return (
            Condition(
                type=REFUSED,
                status="False",
                reason=reason,
                message=message
                or f"the agent keeps to what it was told in term {self._memory.term}",
                last_transition_time=since,
                observed_generation=generation,
            ),
        )


def _moment(seconds: float | None) -> datetime | None:
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC)


def _whole(moment: datetime | None) -> datetime | None:
    """Truncated to the second, as in statuses."""
    return moment.replace(microsecond=0) if moment is not None else None
