"""KindRules: kinds that users describe are known as soon as their rule exists.

Every replica applies the rules, since its agents ask it for kinds; only the leader writes the
status of each rule.
"""

from __future__ import annotations

import logging
from datetime import UTC, datetime

from msgspec.structs import replace

from fairway.api import codec
from fairway.api.errors import ApiError, Invalid
from fairway.api.kindrule import KindRule
from fairway.api.meta import Condition
from fairway.controllers.context import Context
from fairway.controllers.statuses import with_condition, with_status
from fairway.kinds.registry import built_in
from fairway.kinds.rules import Loaded, kinds_of
from fairway.loops import Loop
from fairway.store.interface import Stored, Write
from fairway.store.keys import KIND_RULES
from fairway.store.mirrors import Name

IN_USE = "InUse"
_WRITE = Write(user="system:fairway", manager="fairway-kinds")
_MESSAGE_MOST = 1024

_log = logging.getLogger(__name__)


class KindRules:
    """Keeps the kinds of a hub up to date with its rules."""

    def __init__(self, context: Context) -> None:
        self._store = context.store
        self._cache = context.cache
        self._kinds = context.kinds
        self._clock = context.clock
        self._specs: dict[Name, object] = {}  # from which the kinds were made
        self._loaded = Loaded()
        self._loop: Loop[Name] = Loop(
            "kind rules", self._reconcile, clock=context.clock, forgets=True
        )
        context.cache.mirror(KIND_RULES).followers.append(self._rule_changed)

    async def run(self) -> None:
        """Writes the status of every rule, then of those that change, until cancelled."""
        await self._loop.run(self._cache.names(KIND_RULES))

    def _rule_changed(self, name: Name, stored: Stored | None) -> None:
        rule = self._cache.get(KindRule, name[1]) if stored is not None else None
        spec = rule.spec if rule is not None else None
        if self._specs.get(name) != spec:
            if spec is None:
                del self._specs[name]
            else:
                self._specs[name] = spec
            self._loaded = kinds_of(self._cache.all(KindRule))
            self._kinds.use(built_in().plus(self._loaded.kinds))
        if stored is not None:
            self._loop.mark(name)

    async def _reconcile(self, name: Name) -> float | None:
        stored = self._cache.mirror(KIND_RULES).get(name)
        if stored is None:
            return None
        body = stored.object()
        rule = codec.decode(body, KindRule)
        condition = self._condition(rule, self._loaded.faults.get(rule.metadata.name))
        status = replace(
            rule.status,
            observed_generation=rule.metadata.generation,
            conditions=with_condition(rule.status.conditions, condition),
        )
        if status != rule.status:
            changed = with_status(body, status)
            try:
                await self._store.update(KIND_RULES, changed, subresource="status", write=_WRITE)
            except (ApiError, OSError) as fault:
                _log.debug("the status of rule %s was not written: %s", name[1], fault)
        return None

    def _condition(self, rule: KindRule, fault: Invalid | None) -> Condition:
        return Condition(
            type=IN_USE,
            status="True" if fault is None else "False",
            reason="Loaded" if fault is None else "Invalid",
            message="" if fault is None else str(fault)[:_MESSAGE_MOST],
            last_transition_time=datetime.fromtimestamp(int(self._clock.now()), UTC),
            observed_generation=rule.metadata.generation,
        )
