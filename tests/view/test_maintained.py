"""After any sequence of events, the snapshot that is kept equals one made anew, and plans alike."""

from __future__ import annotations

import json
from random import Random

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from fairway.core import model
from fairway.core.cycle import plan
from fairway.core.plan import Admit, Plan, Preempt
from fairway.core.snapshot import Facts, Snapshot
from fairway.core.transitions import apply_plan
from fairway.view.objects import Objects
from fairway.view.view import View
from tests.properties.checks import cases
from tests.view.events import Story
from tests.view.test_view import facts_shown


def charges(snapshot: Snapshot) -> dict[str, object]:
    """All that a snapshot has worked out, in a form that can be compared."""
    ledger, tree = snapshot.ledger, snapshot.tree
    return {
        "now": snapshot.now,
        "usage": {node.name: dict(tree.usage(node.name)) for node in tree.nodes},
        "over": {node.name: {k: v for k, v in node.over.items() if v} for node in tree.nodes},
        "queues": {node.name: node.queue for node in tree.nodes},
        "free": {
            name: {
                resource: column.tolist()
                for resource, column in sorted(room.free.items())
                if np.any(column)
            }
            for name, room in ledger.rooms.items()
        },
        "pools": dict(sorted(ledger._pools.items())),
        "spent": {name: room.spent for name, room in ledger.rooms.items()},
        "rooms": {name: room.cluster is snapshot.facts.clusters[name]
                  for name, room in ledger.rooms.items()},
        "lines": snapshot.lines,
        "packings": snapshot.packings,
        "holders": snapshot.holders,
        "holding": snapshot.holding,
        "reserving": snapshot.reserving,
        "claims": (
            {name: count for name, count in snapshot.claims._of_queue.items() if count},
            snapshot.claims._of_user,
            snapshot.claims._amounts,
        ),
        "facts": facts_shown(snapshot.facts),
    }  # fmt: skip


def planned(snapshot: Snapshot) -> str:
    return json.dumps(plan(snapshot)[0].render(), sort_keys=True)


def check_equal(maintained: Snapshot, facts: Facts) -> None:
    scratch = Snapshot(facts)
    kept, made = charges(maintained), charges(scratch)
    for part, expected in made.items():
        assert kept[part] == expected, part
    assert planned(maintained) == planned(scratch)
    assert {name: charge for name, charge in charges(maintained).items() if name != "facts"} == {
        name: value for name, value in made.items() if name != "facts"
    }, "planning changed the snapshot"


class Hub:
    """A view that follows a story, decides now and then, and hears of it some time later."""

    def __init__(self, story: Story) -> None:
        self.story = story
        self.view = View()
        self.objects = Objects()
        self.assumed: dict[str, model.Workload] = {}  # as this test keeps them
        story.listeners.append(self.hear)

    def hear(self, what: str, plain: dict) -> None:
        if what == "put":
            self.view.put(plain)
            self.objects.put(plain)
        else:
            self.view.remove(plain)
            self.objects.remove(plain)
        if plain["kind"] == "Workload":
            # Every change in a story has a newer version.
            self.assumed.pop(f"team/{plain['metadata']['name']}", None)

    def facts(self) -> Facts:
        return self.objects.facts(self.story.now, self.assumed)

    def decide(self) -> None:
        """Plans, and takes the decision for done before the store says so."""
        made: Plan = plan(self.view.snapshot(self.story.now))[0]
        self.view.assume(made)
        self.assumed.update(apply_plan(self.facts().workloads, made))

    def fail(self) -> None:
        """The store refused one claim."""
        if self.assumed:
            key = self.story.dice.choice(sorted(self.assumed))
            del self.assumed[key]
            self.view.forget(key)


@cases(250)
@given(st.integers(0, 2**32), st.integers(1, 40))
def test_a_maintained_snapshot_equals_one_made_anew(seed: int, count: int) -> None:
    dice = Random(seed)
    story = Story(dice)
    hub = Hub(story)
    story.begin()
    for _ in range(count):
        happens = dice.random()
        if happens < 0.1:
            hub.decide()
        elif happens < 0.13:
            hub.fail()
        else:
            story.happen()
        if dice.random() < 0.5:
            # Not looked at after every event: several are taken in at once, too.
            check_equal(hub.view.snapshot(story.now), hub.facts())
        if dice.random() < 0.1:
            assert facts_shown(hub.view.facts(story.now)) == facts_shown(hub.facts())
    check_equal(hub.view.snapshot(story.now), hub.facts())


def test_the_stories_have_what_they_are_to_have() -> None:
    """Bound pods, strays, things that find no room, victims and claims that wait for them."""
    found: set[str] = set()
    for seed in range(60):
        story = Story(Random(seed))
        hub = Hub(story)
        story.begin()
        for _ in range(25):
            story.happen()
            snapshot = hub.view.snapshot(story.now)
            facts = snapshot.facts
            placed = [
                item
                for workload in facts.workloads.values()
                for item in (workload.held.placed if workload.held else ())
            ]
            found |= {"bound"} if any(item.bound for item in placed) else set()
            found |= {"strays"} if facts.strays else set()
            found |= {"leaving"} if any(w.releasing for w in facts.workloads.values()) else set()
            found |= {
                f"straight: {occupancy._is_straight}"
                for occupancy in snapshot._occupancies.values()
            }
            found |= {type(step).__name__ for step in plan(snapshot)[0].steps}
    assert found >= {
        "bound", "strays", "leaving", "straight: True", "straight: False",
        Admit.__name__, Preempt.__name__,
    }, found  # fmt: skip
