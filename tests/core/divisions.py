"""Places and policies for tests of division."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

from hypothesis import strategies as st

from fairway.core.model import Division, Group, Policy, Spread
from fairway.core.modes.division import DivisionTarget

Type = Literal["Duplicated", "StaticWeight", "DynamicWeight", "Aggregated"]
TYPES: tuple[Type, ...] = ("StaticWeight", "DynamicWeight", "Aggregated")


def policy(kind: Type, **parts: Any) -> Policy:
    limits = {key: parts.pop(key) for key in ("cluster_min", "cluster_max") if key in parts}
    return Policy(division=Division(type=kind, **limits), **parts)


def after(places: Sequence[DivisionTarget], counts: Mapping[str, int]) -> list[DivisionTarget]:
    """The places once a division is carried out: what it gave is assigned, and no longer free."""
    return [
        replace(
            place,
            assigned=counts.get(place.cluster, 0),
            available=place.available + place.assigned - counts.get(place.cluster, 0),
        )
        for place in places
    ]


HOME_AND_CLOUD = (Group(name="home"), Group(name="cloud"))


def two_groups(
    home: int, cloud: int, home_has: int = 0, cloud_has: int = 0
) -> list[DivisionTarget]:
    return [
        DivisionTarget(cluster="c", group="cloud", available=cloud, assigned=cloud_has),
        DivisionTarget(cluster="h", group="home", available=home, assigned=home_has),
    ]


@st.composite
def cases(draw: st.DrawFn) -> tuple[int, list[DivisionTarget], Policy]:
    groups = draw(
        st.sampled_from(
            [
                (),
                (Group(name="x"), Group(name="y")),
                (Group(name="x", replicas_max=4), Group(name="y")),
            ]
        )
    )
    names = [group.name for group in groups] or [""]
    places = [
        DivisionTarget(
            cluster=name,
            group=draw(st.sampled_from(names)),
            available=draw(st.integers(0, 8)),
            assigned=draw(st.integers(0, 5)),
            weight=draw(st.integers(0, 4)),
            score=draw(st.integers(0, 2)),
            domains=(draw(st.sampled_from("ew")),),
        )
        for name in draw(st.lists(st.sampled_from("abcdef"), unique=True, max_size=6))
    ]
    spread = draw(
        st.sampled_from(
            [
                (),
                (),
                (Spread(by="Region", skew=1),),
                (Spread(by="Region", skew=2, is_preferred=True),),
                (Spread(by="Region", least=2),),
                (Spread(by="Region", most=1),),
            ]
        )
    )
    division = Division(
        type=draw(st.sampled_from(TYPES)),
        cluster_min=draw(st.sampled_from([0, 0, 2, 3])),
        cluster_max=draw(st.sampled_from([None, None, 4])),
    )
    replicas = draw(st.integers(0, 30))
    return replicas, places, Policy(groups=groups, spread=spread, division=division)
