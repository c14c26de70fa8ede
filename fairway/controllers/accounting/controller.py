"""The accountant: follows claims, and writes the account of the day every minute.

Meters follow every change of a claim as it is seen. What clusters have, and what queues lend, is
sampled every few seconds. A hub that starts continues where the last account ended: present claims
count as held since then. So only what ended in the last minute before a crash is missing from that
minute.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta

from fairway.api import codec
from fairway.api.amounts import MILLI, is_accelerator
from fairway.api.cluster import Cluster
from fairway.api.costs import ROWS_MOST, CostAccount, CostAccountSpec
from fairway.api.errors import ApiError, NotFound
from fairway.api.flavor import Flavor
from fairway.api.fleet import Accounting as Settings
from fairway.api.meta import ObjectMeta
from fairway.controllers.accounting.meters import holdings_of, owner_of
from fairway.controllers.context import Context
from fairway.controllers.glance import Glance, glance
from fairway.controllers.scheduling.questions import Standings, Supplies
from fairway.controllers.scheduling.scheduler import Scheduler
from fairway.core.costs.accounts import DAY, Accounts, ClusterFlavor, Holding, Key, Supply, fold
from fairway.core.costs.reports import row_of, sums_of
from fairway.core.explain.queue_status import QueueState
from fairway.store.interface import Stored, Write
from fairway.store.keys import COST_ACCOUNTS, FLAVORS, WORKLOADS
from fairway.store.mirrors import Name
from fairway.view.prices import unit_prices

_log = logging.getLogger(__name__)

_WRITE = Write(user="system:fairway", manager="fairway-accounting")
_LOOK_SECONDS = 15.0
_LOOKS_TO_WRITE = 4
_FIRST_WRITE = 2  # looks: a user who tries a hub need not wait a minute to see what it counts
_AGAIN_SECONDS = 1.0  # where the store cannot be reached


class Accounting:
    """The controller of accounts."""

    def __init__(self, context: Context, *, scheduler: Scheduler) -> None:
        self._store = context.store
        self._cache = context.cache
        self._scheduler = scheduler
        self._clock = context.clock
        self._accounts: Accounts | None = None  # None: another replica does it
        self._known: dict[Name, Glance] = {}  # of workloads that hold something, or just did
        self._queues: dict[Name, str] = {}
        self._prices: dict[ClusterFlavor, Mapping[str, int]] = {}
        context.cache.mirror(WORKLOADS).followers.append(self._follow)
        context.cache.mirror(FLAVORS).followers.append(lambda name, stored: self._reprice())

    async def run(self) -> None:
        """Keeps accounts until cancelled."""
        try:
            begin = await self._begin()
            for name, stored in list(self._cache.mirror(WORKLOADS).items()):
                self._take(name, stored, begin=begin)
            looks = 0
            while True:
                await self._look()
                looks += 1
                if looks % _LOOKS_TO_WRITE == _FIRST_WRITE:
                    await self._write()
                await self._clock.sleep(_LOOK_SECONDS)
        finally:
            self._accounts = None

    # Meters.

    async def _begin(self) -> int:
        """Takes up the last account; returns when it ended: present claims count from then on."""
        self._known.clear()
        result = [codec.decode(stored.raw, CostAccount) for stored in await self._read()]
        self._accounts = accounts = Accounts()
        if not result:
            return self._now()
        last = max(result, key=lambda account: account.spec.until)
        day = _day(last.metadata.name)
        for key, total in sums_of(last.spec.rows).items():
            accounts.sums[day, key] = total
        return min(self._now(), round(last.spec.until.timestamp() * 1000))

    async def _read(self) -> Sequence[Stored]:
        """All accounts, as soon as the store can be reached."""
        while True:
            try:
                return (await self._store.list(COST_ACCOUNTS)).items
            except (ApiError, OSError) as fault:
                _log.warning("accounts cannot be read: %s", fault)
                await self._clock.sleep(_AGAIN_SECONDS)

    def _follow(self, name: Name, stored: Stored | None) -> None:
        if self._accounts is not None:
            self._take(name, stored)

    def _take(self, name: Name, stored: Stored | None, *, begin: int | None = None) -> None:
        accounts, key = self._accounts, f"{name[0]}/{name[1]}"
        assert accounts is not None, "asked only while accounts are kept"
        held = glance(stored) if stored is not None else None
        if stored is not None and held is None:
            return
        before, now = self._known.pop(name, None), self._now()
        if held is not None and before is not None:
            self._lose(name, before, held, now)
        if held is None or not held.placements:
            self._queues.pop(name, None)
            accounts.hold(key, (), now)
            return
        at = now
        if begin is not None:
            decided = held.decided_at
            at = begin if decided is None else max(begin, round(decided * 1000))
        self._known[name] = held
        accounts.hold(key, self._holdings(name, held), min(at, now))

    def _holdings(self, name: Name, held: Glance) -> tuple[Holding, ...]:
        owner = owner_of(
            held, team_label=self._settings().team_label, queue=self._queues.get(name, "")
        )
        self._queues[name] = owner.queue
        return holdings_of(held.placements, owner, self._prices_of)

    def _lose(self, name: Name, before: Glance, after: Glance, now: int) -> None:
        """Counts the run time lost to a preemption, once."""
        assert self._accounts is not None, "asked only while accounts are kept"
        lost = sum(
            attempt.lost_seconds
            for attempt in after.status.history
            if attempt.attempt > before.last_attempt and attempt.preempted_by is not None
        )
        claim = before.status.claim
        if lost and claim is not None:
            label = self._settings().team_label
            owner = owner_of(before, team_label=label, queue=self._queues.get(name, ""))
            holdings = holdings_of(claim.placements, owner, self._prices_of)
            self._accounts.lose(holdings, lost * 1000, now)

    def _prices_of(self, cluster: str, flavor: str) -> Mapping[str, int]:
        place = (cluster, flavor)
        if place not in self._prices:
            self._prices[place] = self._price(place)
        return self._prices[place]

    def _price(self, place: ClusterFlavor) -> Mapping[str, int]:
        cluster = self._cache.get(Cluster, place[0]) if place[0] else None
        flavor = self._cache.get(Flavor, place[1]) if place[1] else None
        return unit_prices(cluster, flavor) if cluster is not None and flavor is not None else {}

    # Looks.

    def _reprice(self) -> None:
        """Applies changed prices: what is held costs the new prices from now on."""
        prices = {place: self._price(place) for place in self._prices}
        if self._accounts is None or prices == self._prices:
            return
        self._prices = prices
        for name, held in self._known.items():
            self._accounts.hold("/".join(name), self._holdings(name, held), self._now())

    async def _look(self) -> None:
        assert self._accounts is not None, "asked only while accounts are kept"
        self._reprice()
        try:
            supplies = await self._scheduler.ask(Supplies())
            standings = await self._scheduler.ask(Standings())
        except ApiError as fault:
            _log.info("what clusters have is not known: %s", fault)
            return
        now = self._now()
        result = {
            place: Supply(gpus=gpus, rate=self._gpu_price(place))
            for place, gpus in supplies.items()
        }
        self._accounts.supply(result, now)
        lent = dict(_lent(standings))
        for owner in self._accounts.owners() - lent.keys():
            if owner.startswith(_LENT):
                self._accounts.hold(owner, (), now)
        for owner, holding in lent.items():
            self._accounts.hold(owner, (holding,), now)

    def _gpu_price(self, place: ClusterFlavor) -> int:
        prices = [price for key, price in self._prices_of(*place).items() if is_accelerator(key)]
        return min(prices, default=0)

    # Accounts.

    async def _write(self) -> None:
        accounts, now = self._accounts, self._now()
        assert accounts is not None, "asked only while accounts are kept"
        accounts.read(now)
        days = sorted({day for day, _ in accounts.sums})
        for day in days:
            sums = fold(
                {key: total for (of, key), total in accounts.sums.items() if of == day}, ROWS_MOST
            )
            spec = CostAccountSpec(
                until=datetime.fromtimestamp(min(now, (day + 1) * DAY) / 1000, UTC),
                currency=self._cache.fleet().spec.currency,
                rows=tuple(row_of(key, total) for key, total in sorted(sums.items())),
            )
            try:
                await self._put(_name(day), spec)
            except (ApiError, OSError) as fault:
                _log.warning("the account of %s was not written: %s", _name(day), fault)
                return
            # Folded rows stay folded; a day that is over need not be remembered.
            for item in [each for each in accounts.sums if each[0] == day]:
                del accounts.sums[item]
            if now < (day + 1) * DAY:
                accounts.sums.update({(day, key): total for key, total in sums.items()})
        await self._forget(now)

    async def _put(self, name: str, spec: CostAccountSpec) -> None:
        made = codec.to_plain(CostAccount(metadata=ObjectMeta(name=name), spec=spec))
        try:
            stored = (await self._store.get(COST_ACCOUNTS, name)).object()
        except NotFound:
            await self._store.create(COST_ACCOUNTS, made, write=_WRITE)
            return
        await self._store.update(COST_ACCOUNTS, {**stored, "spec": made["spec"]}, write=_WRITE)

    async def _forget(self, now: int) -> None:
        """Deletes accounts older than the fleet's settings keep them."""
        oldest = _name(now // DAY - self._settings().days)
        try:
            for stored in (await self._store.list(COST_ACCOUNTS)).items:
                name = stored.object()["metadata"]["name"]
                if name < oldest:
                    await self._store.delete(COST_ACCOUNTS, name, write=_WRITE)
        except (ApiError, OSError) as fault:
            _log.info("old accounts were not removed: %s", fault)

    def _settings(self) -> Settings:
        return self._cache.fleet().spec.accounting

    def _now(self) -> int:
        return round(self._clock.now() * 1000)


_LENT = "lent "


def _lent(standings: list[QueueState]) -> dict[str, Holding]:
    """What leaf queues lend, by accelerator."""
    parents = {standing.parent for standing in standings}
    holdings: dict[str, Holding] = {}
    for queue in (standing for standing in standings if standing.queue not in parents):
        for holding in queue.holdings:
            if holding.lent and is_accelerator(holding.resource):
                key = Key(use="Lent", queue=queue.queue, flavor=holding.flavor)
                name = f"{_LENT}{queue.queue} {holding.flavor} {holding.resource}"
                holdings[name] = Holding(key=key, gpus=holding.lent // MILLI)
    return holdings


def _name(day: int) -> str:
    return (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(days=day)).strftime("%Y-%m-%d")


def _day(name: str) -> int:
    moment = datetime.strptime(name, "%Y-%m-%d").replace(tzinfo=UTC)
    return int(moment.timestamp()) * 1000 // DAY
