"""Who a bearer token belongs to."""

from __future__ import annotations

import base64
import logging
import stat
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairway.api.errors import Invalid
from fairway.clock import VirtualClock
from fairway.server.access.identity import ANONYMOUS, split_service_account
from fairway.server.access.private_files import RefusedFile, write_private
from fairway.server.access.service_accounts import ServiceAccountTokens
from fairway.server.access.tokens import Authenticator


class Hub:
    """An authenticator with the objects it may look up."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.clock = VirtualClock()
        self.uids = {("ServiceAccount", "team", "bot"): "uid-1"}
        self.look_ups = 0
        self.accounts = ServiceAccountTokens(directory, self._find, clock=self.clock)
        self.tokens = Authenticator(directory, self.accounts, clock=self.clock)

    def _find(self, kind: str, namespace: str, name: str) -> str | None:
        self.look_ups += 1
        return self.uids.get((kind, namespace, name))

    def bot_token(self, **spec: object) -> str:
        answer = self.accounts.answer({"spec": spec}, "team", "bot")
        return str(answer["status"]["token"])


@pytest.fixture
def hub(tmp_path: Path) -> Hub:
    return Hub(tmp_path)


def write_tokens(hub: Hub, text: str, mode: int = 0o600) -> None:
    path = hub.directory / "tokens.csv"
    path.unlink()
    path.write_text(text)
    path.chmod(mode)


def test_the_first_start_makes_an_admin_token_only_its_owner_can_read(hub: Hub) -> None:
    path = hub.directory / "tokens.csv"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    admin = hub.tokens.authenticate(hub.tokens.admin_token())
    assert admin is not None
    assert admin.user == "admin"
    assert admin.groups == ("system:masters", "system:authenticated")


def test_a_second_start_keeps_the_token(hub: Hub) -> None:
    assert Hub(hub.directory).tokens.authenticate(hub.tokens.admin_token()) is not None


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o604])
def test_a_token_file_that_others_can_read_is_refused_at_start(hub: Hub, mode: int) -> None:
    (hub.directory / "tokens.csv").chmod(mode)
    with pytest.raises(RefusedFile, match="chmod 600"):
        Authenticator(hub.directory)


def test_a_fault_in_the_file_names_its_row_and_shows_no_token(hub: Hub) -> None:
    write_tokens(hub, "good-token,bob,1\nverysecret,alice\n")
    with pytest.raises(RefusedFile, match="row 2") as raised:
        Authenticator(hub.directory)
    assert "verysecret" not in str(raised.value)


def test_groups_stand_in_one_quoted_column(hub: Hub) -> None:
    write_tokens(hub, 'secret-token,bob,7,"team-a, team-b"\n\n')
    bob = Authenticator(hub.directory).authenticate("secret-token")
    assert bob is not None
    assert (bob.user, bob.uid) == ("bob", "7")
    assert bob.groups == ("team-a", "team-b", "system:authenticated")


async def test_a_changed_file_is_read_again_within_a_second(hub: Hub) -> None:
    old = hub.tokens.admin_token()
    write_tokens(hub, "new-token,bob,1\n")
    await hub.clock.advance(1)
    assert hub.tokens.authenticate("new-token") is not None
    assert hub.tokens.authenticate(old) is None


async def test_a_changed_file_that_cannot_be_used_leaves_the_last_good_tokens(
    hub: Hub, caplog: pytest.LogCaptureFixture
) -> None:
    old = hub.tokens.admin_token()
    write_tokens(hub, "new-token,bob,1\n", mode=0o644)
    await hub.clock.advance(1)
    with caplog.at_level(logging.WARNING):
        assert hub.tokens.authenticate("new-token") is None
        assert hub.tokens.authenticate(old) is not None
    assert "last good one" in caplog.text
    assert "new-token" not in caplog.text


def test_a_service_account_token_carries_its_name_uid_and_groups(hub: Hub) -> None:
    bot = hub.tokens.authenticate(hub.bot_token())
    assert bot is not None
    assert bot.user == "system:serviceaccount:team:bot"
    assert bot.uid == "uid-1"
    assert bot.groups == (
        "system:serviceaccounts",
        "system:serviceaccounts:team",
        "system:authenticated",
    )


async def test_a_token_is_refused_from_the_second_it_expires(hub: Hub) -> None:
    token = hub.bot_token(expirationSeconds=600)
    await hub.clock.advance(599)
    assert hub.tokens.authenticate(token) is not None
    await hub.clock.advance(1)
    assert hub.tokens.authenticate(token) is None


@pytest.mark.parametrize("uid", [None, "uid-2"], ids=["deleted", "made again with another uid"])
def test_a_token_known_to_be_good_is_refused_once_its_account_is(hub: Hub, uid: str | None) -> None:
    token = hub.bot_token()
    assert hub.tokens.authenticate(token) is not None
    if uid:
        hub.uids["ServiceAccount", "team", "bot"] = uid
    else:
        hub.uids.clear()
    assert hub.tokens.authenticate(token) is None


def test_a_token_bound_to_a_pod_dies_with_the_pod(hub: Hub) -> None:
    hub.uids["Pod", "team", "web"] = "pod-1"
    token = hub.bot_token(boundObjectRef={"kind": "Pod", "apiVersion": "v1", "name": "web"})
    bot = hub.tokens.authenticate(token)
    assert bot is not None
    assert bot.extra["authentication.kubernetes.io/pod-name"] == ("web",)
    del hub.uids["Pod", "team", "web"]
    assert hub.tokens.authenticate(token) is None


def _swap(token: str, part: int, change: Callable[[dict[str, object]], object]) -> str:
    parts = token.split(".")
    padded = parts[part] + "=" * (-len(parts[part]) % 4)
    content = msgspec.json.decode(base64.urlsafe_b64decode(padded))
    change(content)
    encoded = base64.urlsafe_b64encode(msgspec.json.encode(content)).rstrip(b"=").decode()
    parts[part] = encoded
    return ".".join(parts)


FORGERIES: dict[str, Callable[[str], str]] = {
    "a longer life": lambda token: _swap(token, 1, lambda body: body.update(exp=2**40)),
    "another name": lambda token: _swap(
        token, 1, lambda body: body.update(sub="system:serviceaccount:team:boss")
    ),
    "no algorithm": lambda token: _swap(token, 0, lambda head: head.update(alg="none")),
    "no signature": lambda token: token.rpartition(".")[0] + ".",
    "no first part": lambda token: token.partition(".")[2],
    "a signature of nothing": lambda token: token.rpartition(".")[0] + "." + "A" * 86,
    "trailing text": lambda token: token + "!",
}


@pytest.mark.parametrize("forge", FORGERIES.values(), ids=FORGERIES.keys())
def test_a_token_is_refused_with(hub: Hub, forge: Callable[[str], str]) -> None:
    token = hub.bot_token()
    assert hub.tokens.authenticate(forge(token)) is None
    assert hub.tokens.authenticate(token) is not None


def test_a_token_for_somebody_else_is_no_token_for_the_hub(hub: Hub) -> None:
    token = hub.bot_token(audiences=["vault"])
    assert hub.tokens.authenticate(token) is None
    found = hub.tokens.authenticate_for(token, ("vault", "other"))
    assert found is not None
    assert found[1] == ("vault",)


def test_another_hubs_token_is_refused(hub: Hub, tmp_path: Path) -> None:
    other = Hub(tmp_path / "other")
    assert hub.tokens.authenticate(other.bot_token()) is None


def test_a_token_of_another_issuer_with_the_same_key_is_refused(hub: Hub) -> None:
    other = ServiceAccountTokens(
        hub.directory, lambda *_: "uid-1", issuer="https://other", clock=hub.clock
    )
    request = {"spec": {"audiences": [hub.accounts.issuer]}}
    token = other.answer(request, "team", "bot")["status"]["token"]
    assert hub.tokens.authenticate(token) is None


def test_a_key_that_others_can_read_is_refused(hub: Hub) -> None:
    (hub.directory / "keys" / "service-accounts.key").chmod(0o644)
    with pytest.raises(RefusedFile, match="chmod 600"):
        Hub(hub.directory)


@pytest.mark.parametrize(
    ("spec", "path"),
    [
        ({"expirationSeconds": 599}, "spec.expirationSeconds"),
        ({"expirationSeconds": 2**33}, "spec.expirationSeconds"),
        ({"boundObjectRef": {"kind": "Node", "name": "n"}}, "spec.boundObjectRef.kind"),
        ({"boundObjectRef": {"kind": "Pod", "name": "gone"}}, "spec.boundObjectRef"),
    ],
)
def test_a_token_request_that_cannot_be_met_names_the_field(
    hub: Hub, spec: dict[str, object], path: str
) -> None:
    with pytest.raises(Invalid) as raised:
        hub.accounts.answer({"spec": spec}, "team", "bot")
    assert raised.value.details["causes"][0]["field"] == path


def test_an_answer_to_a_token_request_says_what_was_granted(hub: Hub) -> None:
    answer = hub.accounts.answer({}, "team", "bot")
    assert answer["spec"] == {"audiences": [hub.accounts.issuer], "expirationSeconds": 3600}
    assert answer["status"]["expirationTimestamp"] == "2027-01-15T09:00:00Z"


def test_only_so_many_verified_tokens_are_remembered(
    hub: Hub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fairway.server.access.tokens._CACHED_MAX", 2)
    tokens = [hub.bot_token() for _ in range(5)]
    assert all(hub.tokens.authenticate(token) for token in [*tokens, *tokens])
    assert len(hub.tokens._verified) == 2


def test_no_token_shows_in_any_description(hub: Hub) -> None:
    token = hub.tokens.admin_token()
    bot = hub.bot_token()
    identity = hub.tokens.authenticate(bot)
    for shown in (repr(hub.tokens), repr(hub.accounts), repr(identity), repr(vars(hub.tokens))):
        assert token not in shown
        assert bot not in shown


@given(st.text(max_size=200))
def test_no_text_is_a_token_by_accident(text: str) -> None:
    assert _ANY_HUB.tokens.authenticate(text) is None
    assert _ANY_HUB.tokens.authenticate(f"{text}.{text}.{text}") is None


@pytest.fixture(autouse=True, scope="module")
def any_hub(tmp_path_factory: pytest.TempPathFactory) -> None:
    global _ANY_HUB  # noqa: PLW0603 - Hypothesis runs one test many times over one hub
    _ANY_HUB = Hub(tmp_path_factory.mktemp("hub"))


_ANY_HUB: Hub


@pytest.mark.parametrize(
    ("user", "parts"),
    [
        ("system:serviceaccount:team:bot", ("team", "bot")),
        ("system:serviceaccount:team", None),
        ("system:serviceaccount:a:b:c", None),
        ("bob", None),
    ],
)
def test_a_service_accounts_user_name_has_a_namespace_and_a_name(
    user: str, parts: tuple[str, str] | None
) -> None:
    assert split_service_account(user) == parts


def test_a_request_without_a_token_is_anonymous() -> None:
    assert ANONYMOUS.user == "system:anonymous"
    assert ANONYMOUS.groups == ("system:unauthenticated",)


def test_no_half_written_file_is_left_when_writing_fails(tmp_path: Path) -> None:
    (tmp_path / "taken").mkdir()
    with pytest.raises(OSError):
        write_private(tmp_path / "taken", b"secret")
    assert [path.name for path in tmp_path.iterdir()] == ["taken"]
