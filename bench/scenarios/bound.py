"""The least that a day could have cost: a mixed-integer program with full knowledge of it.

For every slot of ten minutes and every cluster: replicas on its own nodes and on elastic ones, and
how many of those there are. At every moment as much serves as did on the day; quota, room and stock
hold; a node that comes is paid for while it is on its way. Nothing takes time otherwise, and moves
are free: whoever decides without knowing the future cannot be cheaper. The bound that the solver
has proved is taken, so it is one though the search was cut short.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import accumulate

import highspy

from bench.scenarios.costs import Ground, grounds
from fairway.demo.days.day import Day, Reading
from fairway.demo.days.objects import GPU

_SLOT_HOURS = 1 / 6
_SECONDS_MOST = 60.0
_GAP = 1e-3
_BOUNDED = (highspy.HighsModelStatus.kOptimal, highspy.HighsModelStatus.kTimeLimit)


@dataclass(slots=True)
class _Program:
    """Variables with their prices and limits, and rows over them."""

    prices: list[float] = field(default_factory=list)
    most: list[float] = field(default_factory=list)
    rows: list[dict[int, float]] = field(default_factory=list)
    least: list[float] = field(default_factory=list)  # of each row

    def add(self, price: float, most: float) -> int:
        self.prices.append(price)
        self.most.append(most)
        return len(self.prices) - 1

    def at_least(self, row: dict[int, float], least: float) -> None:
        self.rows.append(row)
        self.least.append(least)

    def solve(self) -> float:
        program = highspy.HighsLp()
        program.num_col_, program.num_row_ = len(self.prices), len(self.rows)
        program.col_cost_ = self.prices
        program.col_lower_, program.col_upper_ = [0.0] * len(self.prices), self.most
        program.integrality_ = [highspy.HighsVarType.kInteger] * len(self.prices)
        program.row_lower_, program.row_upper_ = self.least, [highspy.kHighsInf] * len(self.rows)
        program.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
        program.a_matrix_.start_ = [0, *accumulate(len(row) for row in self.rows)]
        program.a_matrix_.index_ = [column for row in self.rows for column in row]
        program.a_matrix_.value_ = [value for row in self.rows for value in row.values()]
        solver = highspy.Highs()
        solver.setOptionValue("output_flag", False)
        solver.setOptionValue("time_limit", _SECONDS_MOST)
        solver.setOptionValue("mip_rel_gap", _GAP)
        solver.passModel(program)
        solver.run()
        status = solver.getModelStatus()
        assert status in _BOUNDED, solver.modelStatusToString(status)
        return float(solver.getInfo().mip_dual_bound)


@dataclass(slots=True)
class _Slot:
    """The variables of one cluster in one slot."""

    own: int
    elastic: int
    nodes: int


def least_cost(day: Day, readings: Sequence[Reading]) -> float:
    """The least that it could have cost to serve what was served."""
    program = _Program()
    before: dict[str, _Slot] = {}
    quotas = _quotas(day)
    served = _served(day, readings)
    for position, least in enumerate(served):
        ground = grounds(day, position * _SLOT_HOURS)
        slots = {name: _slot(program, value) for name, value in ground.items()}
        program.at_least(
            {
                column: day.speed(name)
                for name, slot in slots.items()
                for column in (slot.own, slot.elastic)
            },
            least,
        )
        for name, slot in slots.items():
            _link(program, ground[name], slot, before.get(name))
        for flavor, quota in quotas.items():
            row = {
                column: -1.0
                for name, slot in slots.items()
                if ground[name].flavor == flavor
                for column in (slot.own, slot.elastic)
            }
            if row:
                program.at_least(row, -quota)
        before = slots
    return program.solve()


def _slot(program: _Program, ground: Ground) -> _Slot:
    return _Slot(
        own=program.add(ground.price * _SLOT_HOURS, ground.standing),
        elastic=program.add(0.0, ground.nodes_max * ground.per_node),
        nodes=program.add(ground.node_price * _SLOT_HOURS, ground.nodes_max),
    )


def _link(program: _Program, ground: Ground, slot: _Slot, before: _Slot | None) -> None:
    """Replicas are on nodes that are there; more nodes than before were ordered, from stock."""
    program.at_least({slot.nodes: float(ground.per_node), slot.elastic: -1.0}, 0.0)
    ordered = program.add(
        ground.node_price * ground.provision_hours,
        ground.nodes_max if ground.has_stock else 0,
    )
    row = {ordered: 1.0, slot.nodes: -1.0}
    if before is not None:
        row[before.nodes] = 1.0
    program.at_least(row, 0.0)


def _served(day: Day, readings: Sequence[Reading]) -> list[float]:
    """What served at every moment of a slot, and was asked for."""
    slots: dict[int, float] = {}
    for reading in readings:
        slot = int(reading.hour / _SLOT_HOURS + 1e-9)
        served = min(float(reading.wanted), reading.worth(day))
        slots[slot] = min(slots.get(slot, served), served)
    return [slots[position] for position in sorted(slots)]


def _quotas(day: Day) -> dict[str, int]:
    (queue,) = [object_ for object_ in day.objects if object_["kind"] == "Queue"]
    (group,) = queue["spec"]["resourceGroups"]
    return {
        flavor["name"]: quota["nominal"]
        for flavor in group["flavors"]
        for quota in flavor["quotas"]
        if quota["resource"] == GPU
    }
