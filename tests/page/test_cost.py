"""Cost: the page says what `fairway cost` says, to the last digit."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from fairway.app import Hub
from fairway.cli.main import run
from fairway.client import Client
from tests.page.hubs import VISITOR_TOKEN
from tests.page.serving import FLEETS
from tests.page.signing import keep, look, sign_in

pytestmark = pytest.mark.xdist_group("page, cost")
ACCOUNTS = "costaccounts.costs.fairway.dev"
DAYS = [f"2026-09-{day:02d}" for day in range(1, 15)]
PERIOD = "since=2026-09-01&until=2026-09-30"
COLUMNS = ("usedGpuHours", "usedCost", "lostGpuHours", "lostCost")


def rows(day: int) -> list[dict[str, Any]]:
    """Amounts that are no round numbers, so that a sum which is rounded too early shows."""
    parts = [
        ("Used", "vision", "research", "pretrain", "home", "h100", 31),
        ("Used", "vision", "research", "evaluate", "home", "a100", 7),
        ("Used", "language", "product", "finetune", "home", "h100", 13),
        ("Used", "language", "serving", "assistant", "cloud-west", "l40s", 11),
        ("Lost", "vision", "research", "pretrain", "home", "h100", 2),
        ("Lent", "", "serving", "", "", "a100", 3),
        ("Idle", "", "", "", "home", "h100", 5),
        ("Idle", "", "", "", "cloud-west", "l40s", 9),
    ]
    return [
        {
            "use": use,
            "namespace": f"team-{queue}" if workload else "",
            "team": team,
            "queue": queue,
            "workload": workload,
            "cluster": cluster,
            "flavor": flavor,
            "gpuSeconds": f"{(weight * 7919 + day * 104729) % 86400}.{day:03d}",
            "money": "0" if use == "Lent" else f"{weight * (day + 3) * 333_333}u",
            "rest": weight * 99_991 % 3_600_000,
        }
        for use, team, queue, workload, cluster, flavor, weight in parts
    ]


@pytest.fixture
def accounts(client: Client) -> Iterator[None]:
    for number, day in enumerate(DAYS):
        client.create(
            {
                "apiVersion": "costs.fairway.dev/v1alpha1",
                "kind": "CostAccount",
                "metadata": {"name": day},
                "spec": {"until": f"{day}T23:59:00Z", "currency": "USD", "rows": rows(number)},
            }
        )
    yield
    for day in DAYS:
        client.delete(ACCOUNTS, day)


def said(hub: Hub, capsys: pytest.CaptureFixture[str], by: str, form: str) -> str:
    """What the command line says of the same period."""
    capsys.readouterr()
    period = ["--since", "2026-09-01", "--until", "2026-09-30"]
    code = run(["cost", "--by", by, *period, "-o", form, "--kubeconfig", str(hub.kubeconfig)])
    assert code == 0
    return capsys.readouterr().out


@pytest.mark.usefixtures("accounts")
@pytest.mark.parametrize("by", ["queue", "namespace", "team", "workload", "cluster", "flavor"])
def test_sums_are_those_of_the_command_line(
    page: Page, hub: Hub, capsys: pytest.CaptureFixture[str], by: str
) -> None:
    look(page, f"cost?{PERIOD}&by={by}")
    table = page.get_by_role("table", name=f"Cost by {by}")
    expect(table).to_be_visible()
    expected = json.loads(said(hub, capsys, by, "json"))
    shown = [line for line in expected["lines"] if line["name"] != "-"]
    for item in [*shown, {**expected["total"], "name": "Total"}]:
        line = table.get_by_role("row").filter(has_text=item["name"])
        found = line.locator("td.number").all_inner_texts()[: len(COLUMNS)]
        assert found == [item[column] for column in COLUMNS], item["name"]
    heads = table.get_by_role("columnheader").all_inner_texts()
    total = table.get_by_role("row").filter(has_text="Total").locator("td.number").all_inner_texts()
    if by in ("cluster", "flavor"):
        at = heads.index("Idle") - 1
        assert total[at : at + 2] == [
            expected["total"][item] for item in ("idleGpuHours", "idleCost")
        ]
    if by in ("queue", "flavor"):
        assert total[heads.index("Lent") - 1] == expected["total"]["lentGpuHours"]
    if by == "team":
        keep(page, "cost-team")


@pytest.mark.usefixtures("accounts")
def test_the_spreadsheet_is_that_of_the_command_line(
    page: Page, hub: Hub, capsys: pytest.CaptureFixture[str]
) -> None:
    look(page, f"cost?{PERIOD}&by=workload")
    expect(page.get_by_role("table", name="Cost by workload")).to_be_visible()
    with page.expect_download() as started:
        page.get_by_role("button", name="Download CSV").click()
    text = Path(started.value.path()).read_text()
    assert started.value.suggested_filename == "cost-by-workload-2026-09-01-2026-09-30.csv"
    assert text == said(hub, capsys, "workload", "csv")


@pytest.mark.usefixtures("accounts")
def test_each_day_has_its_bar_with_what_stood_idle(page: Page) -> None:
    look(page, f"cost?{PERIOD}&measure=hours")
    chart = page.get_by_role("figure", name="GPU-hours by day and queue").get_by_role("img").first
    expect(chart).to_be_visible()
    told = (chart.get_attribute("aria-label") or "").split("; ")
    assert len(told) == 30
    assert "idle" in told[0]
    assert told[-1] == "2026-09-30: nothing"


def test_days_without_an_account_are_said_to_have_none(page: Page) -> None:
    look(page, "cost?since=2020-01-01&until=2020-01-03")
    expect(page.get_by_text("No accounts from 2020-01-01 to 2020-01-03.")).to_be_visible()


def test_the_breaker_of_money_says_what_it_would_refuse(page: Page, client: Client) -> None:
    client.patch(FLEETS, "fleet", {"spec": {"breakers": {"pricePerHour": "20"}}})
    look(page, "cost")
    breaker = page.get_by_role("region", name="Elastic nodes now")
    expect(breaker).to_contain_text("The fleet allows 20 USD an hour")
    expect(breaker).to_contain_text("20 more until the breaker opens.")
    # Two nodes of 12.8 pass: the second begins below the limit. Of six in stock four are left.
    line = breaker.get_by_role("row").filter(has_text="l40s-on-demand")
    expect(line).to_contain_text(re_nodes(more=2, refused=4))
    keep(page, "cost-breaker")
    client.patch(FLEETS, "fleet", {"spec": {"breakers": {"pricePerHour": None}}})


def re_nodes(*, more: int, refused: int) -> str:
    return f"{more}{refused} nodes"


def test_who_signs_in_after_another_sees_nothing_that_the_other_saw(
    page: Page, accounts: None
) -> None:
    look(page, f"cost?{PERIOD}")
    expect(page.get_by_role("row", name="research").first).to_be_visible()
    page.get_by_role("button", name="Sign out").click()
    sign_in(page, VISITOR_TOKEN)
    expect(page.get_by_text("You may not see what was used").first).to_be_visible()
    expect(page.get_by_role("row", name="research")).to_have_count(0)
    expect(page.get_by_role("button", name="Download CSV")).to_be_disabled()
