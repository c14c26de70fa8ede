"""What every controller of a replica works with."""

from __future__ import annotations

from dataclasses import dataclass

from fairway.clock import Clock
from fairway.controllers.cache import Cache
from fairway.controllers.object_events import Notes
from fairway.controllers.proofs import Proofs
from fairway.controllers.shared_state import SharedState
from fairway.controllers.terms import Terms
from fairway.controllers.work_roster import Roster
from fairway.controllers.work_states import States
from fairway.kinds.registry import LiveKinds
from fairway.store.interface import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """One replica's view of the fleet, and the ways to change it."""

    store: Store
    clock: Clock
    cache: Cache  # objects of the store, as its watches deliver them
    proofs: Proofs  # that this hub made a decision
    roster: Roster  # works of the hub
    states: States  # of works, as agents report them
    terms: Terms  # whether this replica leads
    kinds: LiveKinds
    notes: Notes  # events on objects
    shared: SharedState  # what controllers tell each other
