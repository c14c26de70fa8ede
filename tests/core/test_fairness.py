"""Shares, fading and the order among siblings, against tables and a naive twin in fractions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from fairway.core.model import FlavorResource, Queue, Quota
from fairway.core.quota.order import (
    FAIR,
    NO_SHARE,
    SHARE_TESTS,
    Candidate,
    Rules,
    Shares,
    Tournament,
    contest,
    decay,
    share,
)
from fairway.core.quota.shares import half_to_the
from fairway.core.quota.tree import Tree
from tests.core.test_quota import CPU, GPU, PAIRS, SPOT, Charges, Naive, charged, charges, trees

ONE = 10**9
CLASSICAL = Rules(is_enabled=False)
REMEMBERS = Rules(remembers=True, resource_weights={"gpu": ONE // 2})


def queue(
    name: str, parent: str = "", *, weight: int = ONE, priority: int = 0, **nominal: int
) -> Queue:
    pairs = {"cpu": CPU, "gpu": GPU, "spot": SPOT}
    quotas = {pairs[key]: Quota(nominal=amount) for key, amount in nominal.items()}
    return Queue(name=name, parent=parent, weight_nanos=weight, priority=priority, quotas=quotas)


# The formulas as they are written, in fractions.

NaiveShare = tuple[bool, Fraction]


def naive_share(
    naive: Naive, leaf: str, usage: Mapping[FlavorResource, int], at: str, rules: Rules
) -> NaiveShare:
    node, sums = naive.queues[at], dict(naive.charged)
    for pair, amount in usage.items():
        if naive.covers(leaf, pair[1]):
            sums[leaf, pair] = sums.get((leaf, pair), 0) + amount
    after = Naive(naive.queues, sums)
    if not node.parent:
        return False, Fraction(0)
    best = Fraction(0)
    for resource in ("cpu", "gpu"):
        pairs = [pair for pair in PAIRS if pair[1] == resource]
        over = sum(max(0, after.usage(at, p) - after.subtree(at, p)) for p in pairs)
        if rules.remembers:
            weight = rules.resource_weights.get(resource, ONE)
            faded = node.remembered.get(resource, 0) * weight // ONE
            over = max(over, faded - sum(after.subtree(at, p) for p in pairs))
        lendable = sum(after.potential(node.parent, p) for p in pairs)
        if lendable > 0:
            best = max(best, Fraction(over, lendable))
    if node.weight_nanos == 0:
        return best > 0, best
    return False, best * ONE / node.weight_nanos


def naive_best(naive: Naive, heads: Mapping[str, Candidate], rules: Rules) -> str | None:
    def place(node: str, leaf: str) -> tuple[object, ...]:
        head = heads[leaf]
        tail = (-head.priority, head.queued_at, head.key, leaf)
        first = -naive.queues[node].priority
        if not rules.is_enabled:
            levels = [naive.level(leaf, pair, amount) for pair, amount in head.usage.items()]
            return (first, max(levels, default=0), *tail)
        sums = dict(naive.charged)
        covered = [pair for pair in head.usage if naive.covers(leaf, pair[1])]
        for pair in covered:
            sums[leaf, pair] = sums.get((leaf, pair), 0) + head.usage[pair]
        after = Naive(naive.queues, sums)
        borrows = bool(naive.queues[node].parent) and any(
            after.usage(node, pair) > after.subtree(node, pair) for pair in covered
        )
        return (first, borrows, *naive_share(naive, leaf, head.usage, node, rules), *tail)

    def winner(name: str) -> str | None:
        below = naive.children(name)
        if name and not below:
            return name if name in heads else None
        won = [(child, leaf) for child in below if (leaf := winner(child)) is not None]
        return min((place(*item) for item in won), default=(None,))[-1]  # type: ignore[return-value]

    return winner("")


# Tables of shares: a fleet of 100 cpu and 40 gpu, of which half belong to the two teams.

FLEET = (
    queue("fleet", cpu=60, gpu=20),
    queue("red", "fleet", cpu=20, gpu=10),
    queue("blue", "fleet", cpu=20, gpu=10, weight=2 * ONE),
    queue("guest", "fleet", weight=0),
)

SHARES: dict[str, tuple[str, dict[FlavorResource, int], int | None]] = {
    "within its quota a share is nothing": ("red", {CPU: 20, GPU: 10}, 0),
    "beyond it counts what is borrowed, of all that the parent has": ("red", {CPU: 30}, 100),
    "the dominant resource decides": ("red", {CPU: 30, GPU: 20}, 250),
    "a flavor without quota is borrowed from the first unit": ("red", {("b", "cpu"): 1}, 10),
    "twice the weight is half the share": ("blue", {GPU: 20}, 125),
    "thousandths are rounded up": ("blue", {GPU: 11}, 13),
    "with weight nothing a share is infinite once it borrows": ("guest", {CPU: 1}, None),
    "with weight nothing and nothing borrowed it is nothing": ("guest", {}, 0),
    "a root has no share": ("fleet", {CPU: 1000}, 0),
    "a queue that nobody knows has no share": ("nobody", {CPU: 1}, 0),
}


@pytest.mark.parametrize(("name", "usage", "thousandths"), SHARES.values(), ids=SHARES.keys())
def test_share(name: str, usage: dict[FlavorResource, int], thousandths: int | None) -> None:
    tree = Tree.of(FLEET)
    ahead = share(tree, name, usage)
    tree.charge(name, usage)
    shares = Shares(tree)
    assert shares.thousandths(name) == thousandths
    assert shares.share(name) == ahead, "adding on trial and charging are the same"
    backwards = {pair: -amount for pair, amount in usage.items()}
    assert shares.share(name, backwards) == NO_SHARE


def test_infinite_shares_come_last_and_compare_without_weights() -> None:
    tree = Tree.of([*FLEET, queue("visitor", "fleet", weight=0)])
    shares = Shares(tree)
    guest, visitor = shares.share("guest", {CPU: 5}), shares.share("visitor", {CPU: 4})
    assert shares.share("red", {CPU: 100}) < visitor < guest
    assert shares.share("guest", {CPU: 4}) == visitor


def test_shares_that_floats_cannot_tell_apart_are_told_apart() -> None:
    huge = 10**24
    tree = Tree.of(
        [queue("top", cpu=3 * huge), queue("a", "top", weight=3 * ONE), queue("b", "top")]
    )
    shares = Shares(tree)
    assert shares.share("a", {CPU: 3 * (huge + 1)}) > shares.share("b", {CPU: huge})
    assert shares.share("a", {CPU: 3 * huge}) == shares.share("b", {CPU: huge})


def test_yesterdays_heavy_user_waits_where_the_fleet_remembers() -> None:
    red = replace(FLEET[1], remembered={"cpu": 50})
    tree = Tree.of([FLEET[0], red, queue("green", "fleet", cpu=20, gpu=10)])
    rules = Rules(remembers=True)
    assert Shares(tree, rules).thousandths("red") == 300
    assert Shares(tree, FAIR).thousandths("red") == 0
    assert Shares(tree, Rules(remembers=True, resource_weights={"cpu": 0})).thousandths("red") == 0
    assert share(tree, "red", {CPU: 60}, rules=rules) == share(tree, "green", {CPU: 60})
    for chosen, first in ((rules, "green"), (FAIR, "red")):
        tournament = Tournament(tree, chosen)
        tournament.offer("red", Candidate(key="r", queued_at=1, usage={CPU: 25}))
        tournament.offer("green", Candidate(key="g", queued_at=2, usage={CPU: 25}))
        assert tournament.best() == first


# Preemption by share, at the queues below the common ancestor.

DIVISIONS = (
    queue("fleet", cpu=100),
    queue("east", "fleet"),
    queue("west", "fleet"),
    queue("e1", "east"),
    queue("e2", "east"),
    queue("w1", "west"),
)
CONTESTS = {
    "ending with less than the target keeps passes both": (10, 50, 10, True, True),
    "ending level with what the target keeps passes both": (40, 50, 10, True, True),
    "ending above what it keeps but below what it had passes the second": (45, 50, 10, False, True),
    "ending level with what the target had passes neither": (50, 50, 10, False, False),
    "taking all passes the second alone": (1, 50, 50, False, True),
}


@pytest.mark.parametrize(
    ("incoming", "used", "victim", "final", "initial"), CONTESTS.values(), ids=CONTESTS.keys()
)
def test_contest(incoming: int, used: int, victim: int, final: bool, initial: bool) -> None:
    tree = Tree.of(DIVISIONS)
    tree.charge("e2", {CPU: used})
    found = contest(Shares(tree), "w1", "e2", incoming={CPU: incoming}, victim={CPU: victim})
    assert found is not None
    verdicts = {name: test(found) for name, test in SHARE_TESTS.items()}
    assert verdicts == {"LessThanOrEqualToFinalShare": final, "LessThanInitialShare": initial}


def test_a_contest_is_held_just_below_the_common_ancestor() -> None:
    tree = Tree.of(DIVISIONS)
    tree.charge("e1", {CPU: 30})
    tree.charge("w1", {CPU: 25})
    shares = Shares(tree)
    across = contest(shares, "w1", "e2", incoming={CPU: 5}, victim={})
    assert across == (shares.share("w1", {CPU: 5}), shares.share("east"), shares.share("east"))
    assert across.preemptor_with == across.target_before, "e2 has nothing, but east has 30"
    within = contest(shares, "e2", "e1", incoming={CPU: 5}, victim={CPU: 10})
    assert within == (
        shares.share("e2", {CPU: 5}),
        shares.share("e1"),
        shares.share("e1", {CPU: -10}),
    )
    assert contest(shares, "e1", "e1", incoming={}, victim={}) is None
    assert contest(shares, "e1", "east", incoming={}, victim={}) is None
    assert contest(shares, "e1", "nobody", incoming={}, victim={}) is None


# Fading.

FADINGS = {
    "after a half-life half is left": ({"cpu": 1000}, {}, 60.0, 60.0, {"cpu": 500}),
    "after two half-lives a quarter": ({"cpu": 1000}, {}, 120.0, 60.0, {"cpu": 250}),
    "after half a half-life the root of a half": ({"cpu": 10**6}, {}, 30.0, 60.0, {"cpu": 707106}),
    "at once nothing is forgotten": ({"cpu": 7}, {"gpu": 9}, 0.0, 60.0, {"cpu": 7}),
    "a clock that went back forgets nothing": ({"cpu": 7}, {}, -5.0, 60.0, {"cpu": 7}),
    "without a half-life only the present counts": ({"cpu": 7}, {"gpu": 9}, 1.0, 0.0, {"gpu": 9}),
    "usage rises as memory falls": ({"gpu": 100}, {"gpu": 200}, 60.0, 60.0, {"gpu": 150}),
    "steady usage is remembered exactly": ({"gpu": 101}, {"gpu": 101}, 7.3, 60.0, {"gpu": 101}),
    "the last unit fades too": ({"gpu": 1}, {}, 0.001, 60.0, {}),
    "the last unit is reached too": ({"gpu": 99}, {"gpu": 100}, 0.001, 60.0, {"gpu": 100}),
    "after ages nothing is left": ({"cpu": 10**18}, {}, 1e9, 60.0, {}),
}


@pytest.mark.parametrize(
    ("remembered", "current", "seconds", "half_life", "expected"),
    FADINGS.values(),
    ids=FADINGS.keys(),
)
def test_fading(
    remembered: dict[str, int],
    current: dict[str, int],
    seconds: float,
    half_life: float,
    expected: dict[str, int],
) -> None:
    assert decay(remembered, current, seconds, half_life) == expected


@settings(max_examples=300)
@given(st.floats(0, 1e5), st.floats(0.01, 1e5))
def test_powers_of_a_half_agree_with_floats(seconds: float, half_life: float) -> None:
    seconds, half_life = round(seconds, 6), round(half_life, 6)
    expected = 0.5 ** (seconds / half_life)
    assert abs(half_to_the(seconds, half_life) / 2**64 - expected) <= expected * 1e-9 + 1e-17


@settings(max_examples=200)
@given(st.integers(0, 10**12), st.integers(0, 10**12), st.floats(0, 1e4), st.floats(0, 1e4))
def test_fading_in_two_steps_is_fading_in_one(old: int, now: int, one: float, two: float) -> None:
    first = decay({"cpu": old}, {"cpu": now}, one, 3600)
    twice = decay(first, {"cpu": now}, two, 3600).get("cpu", 0)
    once = decay({"cpu": old}, {"cpu": now}, one + two, 3600).get("cpu", 0)
    assert abs(twice - once) <= 3 + abs(old - now) * 1e-8
    assert min(old, now) <= once <= max(old, now)


# Tables of the order. Each leaf has one head; who is next?

A, B = Candidate(key="a", queued_at=2), Candidate(key="b", queued_at=1)
ORDERS: dict[str, tuple[dict[str, int], dict[str, Candidate], str, str]] = {
    "the older is first where all else is equal": ({}, {"e1": A, "w1": B}, "w1", "w1"),
    "workload priority comes before age": (
        {},
        {"e1": replace(A, priority=1), "w1": B},
        "e1",
        "e1",
    ),
    "the key decides at last": ({}, {"e1": A, "w1": replace(B, queued_at=2)}, "e1", "e1"),
    "the lower share comes before priority, unless fair share is off": (
        {"e2": 10},
        {
            "e1": replace(A, priority=9, usage={CPU: 1}),
            "w1": replace(B, usage={CPU: 1}),
        },
        "w1",
        "e1",
    ),
    "the share counts the candidate": (
        {"e1": 3},
        {"e1": replace(A, usage={CPU: 1}), "w1": replace(B, usage={CPU: 5})},
        "e1",
        "w1",
    ),
    "nobody borrows what nobody limits": (
        {"e1": 30},
        {"e1": replace(A, usage={("x", "disk"): 1}), "w1": replace(B, usage={CPU: 5})},
        "e1",
        "e1",
    ),
}


@pytest.mark.parametrize(
    ("usage", "heads", "fair", "classical"), ORDERS.values(), ids=list(ORDERS.keys())
)
def test_order(
    usage: dict[str, int], heads: dict[str, Candidate], fair: str, classical: str
) -> None:
    for rules, expected in ((FAIR, fair), (CLASSICAL, classical)):
        tree = Tree.of(DIVISIONS)
        for name, amount in usage.items():
            tree.charge(name, {CPU: amount})
        tournament = Tournament(tree, rules)
        for leaf, head in heads.items():
            assert tournament.offer(leaf, head)
        assert tournament.pop_best() == expected
        assert tournament.pop_best() in heads
        assert tournament.pop_best() is None


def test_queue_priority_comes_first_among_siblings_and_only_among_them() -> None:
    queues = [division for division in DIVISIONS if division.name != "e2"]
    queues += [queue("e2", "east", priority=7), queue("w2", "west", priority=1)]
    for rules in (FAIR, CLASSICAL):
        tree = Tree.of(queues)
        tournament = Tournament(tree, rules)
        for at, leaf in enumerate(("w1", "w2", "e1", "e2")):
            tournament.offer(leaf, Candidate(key=leaf, queued_at=at, usage={CPU: 1}))
        popped = [tournament.pop_best() for _ in range(4)]
        assert popped == ["w2", "w1", "e2", "e1"], "west's head is older, whatever e2's priority"


def test_who_stays_within_quota_comes_before_who_borrows() -> None:
    tree = Tree.of(
        [queue("top", cpu=100, gpu=100), queue("a", "top", cpu=10), queue("b", "top", cpu=0)]
    )
    tree.charge("a", {GPU: 50})
    tournament = Tournament(tree)
    tournament.offer("b", replace(B, usage={CPU: 1}))
    tournament.offer("a", replace(A, usage={CPU: 10}))
    assert tournament.best() == "a", "its share is higher, for another resource"
    tournament.offer("a", replace(A, usage={CPU: 11}))
    assert tournament.best() == "b"


# East and west own ten each. A head of w1 stays within what w1 owns, but west may have to borrow.
HALVES = (
    queue("fleet", cpu=80),
    queue("east", "fleet", cpu=10),
    queue("west", "fleet"),
    queue("e1", "east"),
    queue("e2", "east"),
    queue("w1", "west", cpu=10),
    queue("w2", "west"),
)


def test_a_head_that_changes_what_it_requests_is_placed_again_all_the_way_up() -> None:
    tree = Tree.of(HALVES)
    tree.charge("w2", {CPU: 8})
    tournament = Tournament(tree)
    tournament.offer("e1", replace(A, usage={CPU: 12}))
    tournament.offer("w1", replace(B, usage={CPU: 1}))
    assert tournament.best() == "w1"
    tournament.offer("w1", replace(B, usage={CPU: 9}))
    assert tournament.best() == "e1", "west would borrow seven, east two"


def test_usage_of_a_queue_without_a_head_moves_the_heads_of_its_siblings() -> None:
    tree = Tree.of(HALVES)
    tournament = Tournament(tree)
    tournament.offer("e1", replace(A, usage={CPU: 12}))
    tournament.offer("w1", replace(B, usage={CPU: 5}))
    assert tournament.best() == "w1"
    tree.charge("w2", {CPU: 8})
    tournament.refresh("w2")
    assert tournament.best() == "e1", "west would borrow three, east two"
    tree.charge("w2", {CPU: -8})
    tournament.refresh("w2")
    assert tournament.best() == "w1"


def test_without_fair_share_usage_of_siblings_moves_quota_further_away_and_back() -> None:
    tree = Tree.of(HALVES)
    tree.charge("e2", {CPU: 8})
    tournament = Tournament(tree, CLASSICAL)
    tournament.offer("e1", replace(A, usage={CPU: 5}))
    tournament.offer("w2", replace(B, usage={CPU: 11}))
    assert tournament.best() == "w2", "both need the fleet's, and it is older"
    tree.charge("e2", {CPU: -8})
    tournament.refresh("e2")
    assert tournament.best() == "e1", "east's own is enough now"
    tree.charge("e2", {CPU: 6})
    tournament.refresh("e2")
    assert tournament.best() == "w2"


def test_a_queue_that_takes_no_workloads_has_no_head() -> None:
    tree = Tree.of([*DIVISIONS, queue("x", "y"), queue("y", "x")])
    tournament = Tournament(tree)
    assert [tournament.offer(name, A) for name in ("east", "x", "nobody")] == [False] * 3
    for name in ("east", "x", "nobody", "e1"):
        tournament.withdraw(name)
        tournament.refresh(name)
    assert tournament.best() is None


# Properties.


@st.composite
def ranked_trees(draw: st.DrawFn) -> tuple[Queue, ...]:
    amounts = st.dictionaries(st.sampled_from(["cpu", "gpu"]), st.integers(0, 40))
    return tuple(
        replace(
            item,
            weight_nanos=draw(st.sampled_from([0, ONE, ONE, 2 * ONE, ONE // 3])),
            priority=draw(st.sampled_from([0, 0, 0, 1])),
            remembered=draw(amounts),
        )
        for item in draw(trees())
    )


@settings(max_examples=200, deadline=None)
@given(ranked_trees(), charges, st.sampled_from([FAIR, REMEMBERS]))
def test_shares_compare_as_the_fractions_do(
    queues: Sequence[Queue], amounts: Charges, rules: Rules
) -> None:
    tree, naive = charged(queues, amounts)
    shares, extra = Shares(tree, rules), {CPU: 3, SPOT: 8}
    pairs = [
        (shares.share(leaf, extra, at=at), naive_share(naive, leaf, extra, at, rules))
        for leaf in tree.leaves
        for at in (leaf, *tree.ancestors(leaf))
    ]
    for ours, theirs in pairs:
        event("infinite" if theirs[0] else "positive" if theirs[1] else "nothing")
        for other, fraction in pairs:
            assert (ours < other, ours == other) == (theirs < fraction, theirs == fraction)


heads = st.builds(
    Candidate,
    key=st.sampled_from(["a", "b", "c"]),
    priority=st.integers(0, 1),
    queued_at=st.integers(0, 2).map(float),
    usage=st.dictionaries(st.sampled_from(PAIRS), st.integers(1, 12), max_size=2),
)
moves = st.lists(
    st.tuples(
        st.sampled_from(["offer", "offer", "withdraw", "admit", "admit", "charge", "release"]),
        st.integers(0, 7),
        heads,
    ),
    min_size=4,
    max_size=16,
)


@settings(max_examples=250, deadline=None)
@given(ranked_trees(), charges, moves, st.sampled_from([FAIR, REMEMBERS, CLASSICAL]))
def test_the_tournament_equals_one_played_from_scratch(
    queues: Sequence[Queue],
    amounts: Charges,
    steps: Sequence[tuple[str, int, Candidate]],
    rules: Rules,
) -> None:
    tree, naive = charged(queues, amounts)
    tournament, waiting, names = Tournament(tree, rules), {}, sorted(naive.queues)

    def charge(name: str, usage: Mapping[FlavorResource, int]) -> None:
        tree.charge(name, usage)
        for pair, amount in usage.items():
            if naive.covers(name, pair[1]):
                naive.charged[name, pair] = naive.charged.get((name, pair), 0) + amount
        tournament.refresh(name)

    # Every leaf starts with a head, so that most decisions have rivals.
    for at, name in enumerate(tree.leaves):
        waiting[name] = replace(steps[at % len(steps)][2], key=f"{name}-0")
        tournament.offer(name, waiting[name])
    for action, index, head in steps:
        leaf, name = tree.leaves[index % len(tree.leaves)], names[index % len(names)]
        match action:
            case "offer":
                waiting[leaf] = head
                tournament.offer(leaf, head)
            case "withdraw":
                waiting.pop(leaf, None)
                tournament.withdraw(leaf)
            case "admit" if (best := tournament.pop_best()) is not None:
                charge(best, waiting.pop(best).usage)
            case "charge":
                charge(name, head.usage)
            case "release":
                held = {pair: -naive.charged.get((name, pair), 0) for pair in PAIRS}
                charge(name, {pair: amount for pair, amount in held.items() if amount})
        event(f"{len(waiting)} rivals")
        assert tournament.best() == naive_best(naive, waiting, rules)
