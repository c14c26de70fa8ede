"""What one may not see is not shown."""

from __future__ import annotations

import pytest
from playwright.sync_api import Browser, expect

from fairway.app import Hub
from fairway.client import Client
from tests.page.hubs import VISITOR_TOKEN
from tests.page.looking import line, open_workload
from tests.page.signing import look, signed_in

pytestmark = pytest.mark.xdist_group("page")


def test_who_may_look_at_one_namespace_sees_that_one_alone(
    browser: Browser, hub: Hub, client: Client
) -> None:
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"}
    client.create(
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "RoleBinding",
            "metadata": {"name": "visitor", "namespace": "team-product"},
            "roleRef": role,
            "subjects": [{"apiGroup": role["apiGroup"], "kind": "User", "name": "visitor"}],
        }
    )
    watched = signed_in(browser, hub.url, VISITOR_TOKEN)
    page = watched.page
    expect(page.get_by_role("alert").first).to_contain_text("You may not see")
    look(page, "workloads")
    page.get_by_label("Look in one namespace instead").fill("team-product")
    page.get_by_role("button", name="Look").click()
    expect(line(page, "finetune")).to_be_visible()
    assert page.get_by_text("pretrain").count() == 0
    open_workload(page, "finetune", "team-product")
    expect(page.get_by_role("button", name="Suspend")).to_be_disabled()
    watched.close()
    assert [one for one in watched.complaints if "403" not in one] == []
