"""The days: two ordinary ones, and five on which something goes wrong."""

from __future__ import annotations

from fairway.demo.days.day import Day, Event, Release
from fairway.demo.days.objects import (
    BAD,
    cluster,
    flavor,
    fleet,
    policy,
    pool,
    queue,
    rollout,
    service,
)

# A working day: quiet at night, busy at noon, busiest in the evening.
_TIDE = ((0, 6), (6, 6), (9, 20), (12, 26), (14, 22), (17, 30), (20, 36), (22, 14), (23, 6))
_CALM = ((0, 8), (7, 8), (10, 22), (17, 22), (20, 8))

CROSS_REGION = Day(
    name="cross-region",
    title="Two regions: the near one first, its elastic nodes next, the far one last",
    says=(
        "Region A has RTX 5090s, of which one counts for one and a half. First they are filled, "
        "then nodes are bought there, and only then the RTX 4090s of region B are used. At night "
        "everything is back in region A."
    ),
    objects=(
        fleet(),
        flavor("rtx-5090", "0.9", "1.5"),
        flavor("rtx-4090", "0.6"),
        queue({"rtx-5090": 20, "rtx-4090": 24}),
        cluster("region-a-1", "region-a", "rtx-5090", nodes=1),
        cluster(
            "region-a-2",
            "region-a",
            "rtx-5090",
            nodes=1,
            pools=[pool("rtx-5090", "4.8", most=2)],
        ),
        cluster("region-b", "region-b", "rtx-4090", nodes=5),
        policy(["region-a", "region-b"], division={"type": "DynamicWeight", "countBy": "Speed"}),
        service(6, ["rtx-5090", "rtx-4090"]),
    ),
    demand=_TIDE,
    speeds={"region-a-1": 1.5, "region-a-2": 1.5},
)

HYBRID = Day(
    name="hybrid",
    title="A site of our own and a cloud: what is paid for is filled first",
    says=(
        "The site holds 16 replicas. What the day asks for beyond that bursts into the cloud, on "
        "nodes that are bought for it. When the tide goes out, the cloud is left first."
    ),
    objects=(
        fleet(),
        flavor("l40s", "0.3"),
        flavor("cloud-l40s", "1.1"),
        queue({"l40s": 16, "cloud-l40s": 28}),
        cluster("on-premises", "site", "l40s", nodes=4),
        cluster("cloud", "cloud", "cloud-l40s", nodes=0, pools=[pool("cloud-l40s", "4.4", most=7)]),
        policy(["site", "cloud"], division={"type": "DynamicWeight"}),
        service(6, ["l40s", "cloud-l40s"]),
    ),
    demand=_TIDE,
)


def _stock(cluster: str, flavor: str, price: str, most: int, stock: int) -> dict[str, object]:
    del cluster
    return {"spec": {"elasticPools": [pool(flavor, price, most=most, stock=stock)]}}


STOCK_OUT = Day(
    name="stock-out",
    title="A cloud is sold out in the middle of a burst",
    says=(
        "The near cloud has stock for a while; at half past nine there is none left, in the middle "
        "of the morning's burst. What is missing overflows to the far cloud."
    ),
    objects=(
        fleet(),
        flavor("l40s", "0.3"),
        flavor("cloud-l40s", "1.1"),
        queue({"l40s": 12, "cloud-l40s": 40}),
        cluster("on-premises", "site", "l40s", nodes=3),
        cluster(
            "near-cloud",
            "near",
            "cloud-l40s",
            nodes=0,
            pools=[pool("cloud-l40s", "4.4", most=8, stock=8)],
        ),
        cluster(
            "far-cloud",
            "far",
            "cloud-l40s",
            nodes=0,
            pools=[pool("cloud-l40s", "5.2", most=8, stock=8)],
        ),
        policy(["site", "near", "far"], division={"type": "DynamicWeight"}),
        service(8, ["l40s", "cloud-l40s"]),
    ),
    demand=((0, 8), (7, 8), (11, 30), (17, 30), (20, 8)),
    events=(
        Event(
            at=9.25,
            cluster="near-cloud",
            patch=_stock("near-cloud", "cloud-l40s", "4.4", 8, 0),
            says="the near cloud has no stock left",
        ),
        Event(
            at=18,
            cluster="near-cloud",
            patch=_stock("near-cloud", "cloud-l40s", "4.4", 8, 6),
            says="the near cloud has stock again",
        ),
    ),
)


def _spot(nodes: int) -> dict[str, object]:
    result = cluster("spot", "spot", "spot", nodes=nodes)
    return {"spec": {"simulated": {"nodePools": result["spec"]["simulated"]["nodePools"]}}}


SPOT = Day(
    name="spot-reclaimed",
    title="Spot nodes are reclaimed at noon",
    says=(
        "Spot nodes are cheap and come before those on demand. At noon the provider takes them "
        "all; what ran there is bought on demand. Four hours later they are back, and replicas "
        "return to them."
    ),
    objects=(
        fleet(),
        flavor("l40s", "0.3"),
        flavor("spot", "0.4"),
        flavor("on-demand", "1.1"),
        queue({"l40s": 8, "spot": 16, "on-demand": 24}),
        cluster("on-premises", "site", "l40s", nodes=2),
        cluster("spot", "spot", "spot", nodes=4),
        cluster(
            "on-demand",
            "on-demand",
            "on-demand",
            nodes=0,
            pools=[pool("on-demand", "4.4", most=6)],
        ),
        policy(["site", "spot", "on-demand"], division={"type": "DynamicWeight"}),
        service(8, ["l40s", "spot", "on-demand"]),
    ),
    demand=_CALM,
    events=(
        Event(
            at=12, cluster="spot", patch=_spot(0), says="the spot nodes are reclaimed", takes=True
        ),
        Event(at=16, cluster="spot", patch=_spot(4), says="spot nodes can be had again"),
    ),
)


def _outage(is_down: bool) -> dict[str, object]:
    return {"spec": {"simulated": {"faults": {"outage": is_down}}}}


LOST = Day(
    name="cluster-lost",
    title="The home cluster is lost at the peak",
    says=(
        "The cluster that holds most of the service is gone from half past eleven to three. The "
        "others take over what they can hold, new nodes are bought for the rest, and when the "
        "cluster is back replicas come home a few at a time."
    ),
    objects=(
        fleet(),
        flavor("l40s", "0.3"),
        flavor("cloud-l40s", "1.1"),
        queue({"l40s": 24, "cloud-l40s": 32}),
        cluster("home", "home", "l40s", nodes=5),
        cluster("second", "second", "l40s", nodes=1),
        cluster("cloud", "cloud", "cloud-l40s", nodes=0, pools=[pool("cloud-l40s", "4.4", most=8)]),
        policy(["home", "second", "cloud"], division={"type": "DynamicWeight"}),
        service(8, ["l40s", "cloud-l40s"]),
    ),
    demand=_CALM,
    events=(
        Event(at=11.5, cluster="home", patch=_outage(True), says="home is lost", takes=True),
        Event(at=15, cluster="home", patch=_outage(False), says="home is back"),
    ),
)


def _price(factor: str) -> dict[str, object]:
    return {"spec": {"priceFactor": factor}}


def _flaps() -> tuple[Event, ...]:
    """Every quarter of an hour the cheaper of the two clusters changes."""
    events = []
    for quarter in range(4 * 8, 4 * 18):
        cheap, dear = ("east", "west") if quarter % 2 else ("west", "east")
        events.append(Event(at=quarter / 4, cluster=cheap, patch=_price("0.5")))
        events.append(Event(at=quarter / 4, cluster=dear, patch=_price("2")))
    events.append(Event(at=18, cluster="east", patch=_price("1")))
    events.append(Event(at=18, cluster="west", patch=_price("1")))
    return tuple(events)


FLAPPING = Day(
    name="flapping-scores",
    title="Prices that change places every quarter of an hour move nothing",
    says=(
        "Two regions are equally good but for the price, and who is the cheaper changes all the "
        "time. What runs stays where it is: not one replica moves for it."
    ),
    objects=(
        fleet(),
        flavor("l40s", "0.8"),
        queue({"l40s": 40}),
        cluster("east", "clouds", "l40s", nodes=5),
        cluster("west", "clouds", "l40s", nodes=5),
        policy(
            ["clouds"],
            division={"type": "Aggregated"},
            scores=[{"builtIn": "Price", "weight": 10}],
        ),
        service(8, ["l40s"]),
    ),
    demand=_CALM,
    events=_flaps(),
)

CANARY = Day(
    name="bad-canary",
    title="A good version rolls out in batches; a bad one rolls back from its first",
    says=(
        "Two further replicas are claimed while a version rolls out, so that none is ever lacking. "
        "At eleven a good one takes the far site first and home after it. The one of three never "
        "gets ready: two replicas of the far site have it for ten minutes, and home never does."
    ),
    objects=(
        fleet(),
        flavor("l40s", "0.3"),
        queue({"l40s": 28}),
        cluster("home", "home", "l40s", nodes=4),
        cluster("far", "far", "l40s", nodes=3),
        policy(["home", "far"], division={"type": "DynamicWeight"}),
        service(8, ["l40s"]),
        rollout(canary={"percent": 10}, maxUnavailable=0, maxSurge=2, soakSeconds=600),
    ),
    demand=_CALM,
    releases=(
        Release(at=11, image="model:2", says="a good version"),
        Release(at=15, image=BAD, says="a bad version"),
    ),
)

DAYS = {day.name: day for day in (CROSS_REGION, HYBRID, STOCK_OUT, SPOT, LOST, FLAPPING, CANARY)}
