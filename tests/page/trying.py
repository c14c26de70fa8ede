"""Changes as a person tries them in What if, by hand."""

from __future__ import annotations

import json

from playwright.sync_api import Page

from tests.page.workloads import job


def chosen(page: Page, sort: str) -> None:
    page.get_by_role("button", name=sort, exact=True).click()


def tried(page: Page) -> None:
    page.get_by_role("button", name="Try it").click()


def workload(page: Page) -> None:
    chosen(page, "A workload")
    page.get_by_label("Queue", exact=True).select_option("product")
    page.get_by_label("Flavor", exact=True).select_option("a100")
    page.get_by_label("Pods").fill("1")
    page.get_by_label("GPUs each").fill("1")
    tried(page)


def service(page: Page) -> None:
    chosen(page, "A workload")
    page.get_by_label("Kind").select_option("Deployment")
    page.get_by_label("Queue", exact=True).select_option("serving")
    page.get_by_label("Flavor", exact=True).select_option("l40s")
    page.get_by_label("Replicas").fill("6")
    page.get_by_label("GPUs each").fill("1")
    tried(page)


def manifests(page: Page) -> None:
    chosen(page, "A workload")
    page.get_by_label("As manifests").check()
    small = job("tried", team="product", pods=1, gpus=1, flavor="a100")
    page.get_by_label("Manifests", exact=True).fill(json.dumps(small))
    tried(page)


def quota(page: Page) -> None:
    chosen(page, "Another quota")
    page.get_by_label("Queue", exact=True).select_option("research")
    page.get_by_label("Of", exact=True).select_option("h100 nvidia.com/gpu")
    page.get_by_label("Owns").fill("64")
    tried(page)


def lost(page: Page) -> None:
    chosen(page, "A lost cluster")
    page.get_by_label("Cluster", exact=True).select_option("onprem-hangzhou")
    tried(page)


def copied(page: Page) -> None:
    chosen(page, "A new cluster")
    page.get_by_label("Nodes of", exact=True).select_option("onprem-hangzhou")
    page.get_by_label("Region").fill("shanghai")
    page.get_by_label("Price factor").fill("0.8")
    tried(page)


def new(page: Page) -> None:
    chosen(page, "A new cluster")
    page.get_by_label("With nodes of its own").check()
    page.get_by_label("Labels like").select_option("onprem-hangzhou")
    page.get_by_label("Flavor", exact=True).select_option("h100")
    page.get_by_label("Nodes", exact=True).fill("3")
    tried(page)
