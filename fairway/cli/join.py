"""`fairway join`: adds a cluster to the fleet, by push or by pull.

By push, the cluster named by --context gets an account for the hub, and the hub gets a kubeconfig
for it. By pull, the hub creates the Cluster, and this prints the one command to run there.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from fairway.cli import terminal
from fairway.cli.commands import Command
from fairway.cli.options import Duration
from fairway.cli.render_objects import to_documents
from fairway.cli.render_table import show
from fairway.cli.session import Failure, Session, current, say
from fairway.client.access import Access
from fairway.client.wire import Object

if TYPE_CHECKING:
    from fairway.agent.join.hub_side import Wanted

EXAMPLES = """
    fairway join --name hangzhou-1 --context hz1                read-only at first
    fairway join --name hangzhou-1 --context hz1 --discover     with Flavors and topology
    fairway join --name hangzhou-1 --context hz1 --mode Manage  let the hub act there
    fairway join --print-rbac --mode Manage --context hz1       what the hub may do there
    fairway join --name hangzhou-1 --context hz1 --mode Manage --allow exec,port-forward
    fairway join --name edge-7 --pull                           one that the hub cannot reach
"""
_TURNS = {"Observe": "look and touch nothing", "Shadow": "look, and say what it would do"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What the options request."""

    name: str
    mode: str
    discovers: bool
    is_dry: bool
    allowed: tuple[str, ...] = ()
    is_pull: bool = False

    @property
    def may_act(self) -> bool:
        return self.mode == "Manage"


@click.command(cls=Command, examples=EXAMPLES)
@click.option("--name", default="", metavar="NAME", help="Name of the cluster in the fleet.")
@click.option(
    "--mode",
    type=click.Choice(["Observe", "Shadow", "Manage"]),
    default="Observe",
    show_default=True,
    help="Observe only, also show what would be done, or act.",
)
@click.option(
    "--allow",
    "allowed",
    default="",
    metavar="LIST",
    help="What users may do inside their pods besides reading output: exec, port-forward.",
)
@click.option("--discover", "discovers", is_flag=True, help="Draft Flavors, topology and pools.")
@click.option("--print-rbac", "prints", is_flag=True, help="Print the rights it needs, and stop.")
@click.option("--dry-run", "is_dry", is_flag=True, help="Print what would be made; make nothing.")
@click.option("--pull", is_flag=True, help="Print the command that starts an agent over there.")
@click.option(
    "--replace", "replaces", is_flag=True, help="With --pull: replace an agent that joined before."
)
@click.option(
    "--valid-for",
    type=Duration(),
    default="1h",
    show_default=True,
    metavar="TIME",
    help="With --pull: how long the invitation lasts; 10m at least.",
)
@click.option("--hub-url", default="", metavar="URL", help="With --pull: the hub as seen there.")
@click.option(
    "--stream-url",
    default="",
    metavar="URL",
    help="With --pull: where the hub takes streams, if it keeps its objects on Kubernetes.",
)
@click.option(
    "--stream-authority",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="With --stream-url: who signed the certificate there, as PEM; else the system's own.",
)
@click.option("--hub-kubeconfig", default="", metavar="FILE", help="The hub's own kubeconfig.")
@click.option("--hub-context", default="", metavar="NAME", help="The hub's own context.")
def join(  # noqa: PLR0913 - one argument for each option
    *,
    name: str,
    mode: str,
    allowed: str,
    discovers: bool,
    prints: bool,
    is_dry: bool,
    pull: bool,
    replaces: bool,
    valid_for: float,
    hub_url: str,
    stream_url: str,
    stream_authority: Path | None,
    hub_kubeconfig: str,
    hub_context: str,
) -> int:
    """Add a cluster to the fleet.

    Here --kubeconfig and --context name the cluster that joins; the hub is the one that other
    commands find by themselves, or that --hub-kubeconfig and --hub-context name.
    """
    session = current()
    wish = Wish(
        name=name,
        mode=mode,
        discovers=discovers,
        is_dry=is_dry,
        allowed=_allowed(allowed, mode),
        is_pull=pull,
    )
    if prints:
        return _print_rights(session, wish)
    if not name:
        raise click.UsageError("--name says what the cluster is called in the fleet.")
    hub = replace(session, kubeconfig=hub_kubeconfig or None, context=hub_context)
    if pull:
        if session.kubeconfig or session.context:
            raise click.UsageError(
                "With --pull, the hub is named by --hub-kubeconfig, --hub-context."
            )
        from fairway.agent.join.hub_side import Wanted  # noqa: PLC0415 - starts fast

        return _invite(
            hub,
            wish,
            hub_url,
            Wanted(
                mode=mode,
                seconds=int(valid_for),
                replaces=replaces,
                streams=stream_url.rstrip("/"),
                streams_authority=stream_authority.read_text() if stream_authority else "",
            ),
        )
    return asyncio.run(_push(_member(session), hub.find_access(), wish))


def _member(session: Session) -> Access:
    """The cluster that joins; it must be named, because the default context is the hub."""
    from fairway.hub.on_kubernetes import OnKubernetes, access_to  # noqa: PLC0415 - starts fast

    if not session.kubeconfig and not session.context:
        raise click.UsageError("--context or --kubeconfig names the cluster that joins.")
    return access_to(OnKubernetes(kubeconfig=session.kubeconfig, context=session.context))


def _allowed(text: str, mode: str) -> tuple[str, ...]:
    from fairway.agent.drivers.kubernetes.rights import ALLOWABLE  # noqa: PLC0415 - starts fast

    named = tuple(part.strip() for part in text.split(",") if part.strip())
    for name in named:
        if name not in ALLOWABLE:
            raise click.UsageError(f"--allow knows {', '.join(ALLOWABLE)}; not {name}.")
    if named and mode != "Manage":
        raise click.UsageError("--allow is for --mode Manage: nothing else runs pods there.")
    return named


def _rights(kinds: Sequence[tuple[str, str]], wish: Wish) -> list[Object]:
    from fairway.agent.join import push  # noqa: PLC0415 - starts fast without it

    return push.member_objects(
        kinds, may_act=wish.may_act, allowed=wish.allowed, may_renew=not wish.is_pull
    )


def _print_rights(session: Session, wish: Wish) -> int:
    from fairway.cli.cluster_survey import known_kinds, look  # noqa: PLC0415 - starts fast without it

    if session.kubeconfig or session.context:
        kinds = asyncio.run(look(_member(session))).kinds
    else:
        kinds = known_kinds()
    terminal.write([to_documents(_rights(kinds, wish))])
    return 0


async def _push(access: Access, hub_access: Access, wish: Wish) -> int:
    from fairway.agent.join import hub_side, push  # noqa: PLC0415 - starts fast without it
    from fairway.cli import cluster_survey  # noqa: PLC0415 - as above

    match = await cluster_survey.look(access)
    show(cluster_survey.table(match))
    pushed = push.Pushed(
        cluster=wish.name, mode=wish.mode, topology=match.topology if wish.discovers else ()
    )
    rights = _rights(match.kinds, wish)
    drafts = match.flavors if wish.discovers else []
    if wish.is_dry:
        made = [*rights, *drafts, push.cluster_object(pushed)]
        terminal.write(["", to_documents(made)])
        return 0
    try:
        async with cluster_survey.open_api(access) as member:
            credential = await push.prepare(member, rights)
        config = push.kubeconfig(access, credential.token)
        pushed = replace(pushed, context=push.context_of(credential.token))
        async with cluster_survey.open_api(hub_access) as hub:
            await cluster_survey.add_missing(hub, drafts)
            await push.enter(hub, pushed, config)
    except hub_side.Refused as error:
        raise Failure(str(error)) from error
    _tell(wish, credential.expires_at, drafts, match.elastic_pools if wish.discovers else [])
    return 0


def _tell(
    wish: Wish, expires_at: str, drafts: Sequence[Object], elastic_pools: Sequence[Object]
) -> None:
    lines = ["", f"cluster.fairway.dev/{wish.name} joined, mode {wish.mode}"]
    lines += [f"flavor.fairway.dev/{draft['metadata']['name']} drafted" for draft in drafts]
    terminal.write(lines)
    say(f"The hub's token for it lasts until {expires_at}; the hub renews it before.")
    if wish.mode in _TURNS:
        say(f"The hub may {_TURNS[wish.mode]}. Join again with --mode Manage to let it act.")
    if elastic_pools:
        say("Its nodes come from these pools. If the hub shall grow them, put this in the Cluster:")
        say(to_documents([{"spec": {"elasticPools": list(elastic_pools)}}]))


def _invite(hub: Session, wish: Wish, url: str, wanted: Wanted) -> int:
    from fairway.agent.join import hub_side  # noqa: PLC0415 - starts fast without it
    from fairway.agent.join.invitations import Invitation  # noqa: PLC0415 - as above
    from fairway.cli.cluster_survey import open_api  # noqa: PLC0415 - as above

    access = hub.find_access()
    for option, value in (("--hub-url", url), ("--stream-url", wanted.streams)):
        if value and not value.startswith("https://"):
            raise click.UsageError(f"{option} begins with https://.")
    seen = replace(access, server=url.rstrip("/") or access.server)

    async def invite() -> Invitation:
        async with open_api(access) as api:
            return await hub_side.invite(api, seen, wish.name, wanted)

    if wish.is_dry:
        raise click.UsageError("--dry-run is for joining by push.")
    try:
        invitation = asyncio.run(invite())
    except hub_side.Refused as error:
        raise Failure(str(error)) from error
    say(f"Run this where {wish.name} can be reached, within {wanted.seconds // 60} minutes:\n")
    terminal.write([f"fairway agent --join {invitation.text()}"])
    say(f"\nIt asks to join and shows a key; then run: fairway accept {wish.name}")
    return 0
