"""`fairway install`: the YAML that makes a Kubernetes cluster a hub, or a member."""

from __future__ import annotations

import click

from fairway.cli.commands import Command
from fairway.cli.session import current
from fairway.deploy import manifests, member
from fairway.deploy.settings import SYSTEM, Settings, faults

EXAMPLES = """
    fairway install --image registry.example.com/fairway:1 | kubectl apply --server-side -f -
    fairway install --monitoring > hub.yaml        with alerts, for the Prometheus operator
    fairway install --member --observe | kubectl apply --context hangzhou-1 -f -
"""
_NEXT = """\
# Fairway on Kubernetes. Apply with: kubectl apply --server-side -f -
# Then: kubectl -n {namespace} rollout status deployment/fairway-hub
# Its tokens are in the Secret fairway-tokens of that namespace; docs/guides/install.md has more.
# What --no-crds prints can be deleted again, and workloads stay; with the kinds they go too.
"""
_NEXT_OF_MEMBER = """\
# What a hub's agent needs in a cluster that it looks after. Apply with: kubectl apply -f -
# Its token, for the kubeconfig that the hub is given:
#   kubectl -n {namespace} create token fairway-agent --duration=8760h
"""
_DEFAULTS = Settings()


@click.command(cls=Command, examples=EXAMPLES)
@click.option("--image", default=_DEFAULTS.image, show_default=True, help="The hub's image.")
@click.option(
    "--replicas",
    type=int,
    default=_DEFAULTS.replicas,
    show_default=True,
    metavar="N",
    help="Number of hub replicas; one leads.",
)
@click.option("--cpu", default=_DEFAULTS.cpu, show_default=True, help="CPU of each replica.")
@click.option(
    "--memory", default=_DEFAULTS.memory, show_default=True, help="Memory of each replica."
)
@click.option(
    "--option",
    "options",
    multiple=True,
    metavar="OPTION",
    help="Extra option of `fairway up`, such as --oidc-client-id=NAME; repeatable.",
)
@click.option("--monitoring", is_flag=True, help="ServiceMonitor, alert rules and a dashboard too.")
@click.option("--all-secrets", is_flag=True, help="Read Secrets of workloads in all namespaces.")
@click.option("--no-crds", is_flag=True, help="Leave out the kinds.")
@click.option("--no-network-policy", is_flag=True, help="Leave out the NetworkPolicy.")
@click.option(
    "--no-admission-policy",
    is_flag=True,
    help="Leave out policies that change what is submitted; needed before Kubernetes 1.36.",
)
@click.option(
    "--no-admission-webhook", is_flag=True, help="Leave out that the server asks about writes."
)
@click.option("--member", "is_member", is_flag=True, help="For a member cluster.")
@click.option("--observe", is_flag=True, help="With --member: the agent only observes.")
def install(  # noqa: PLR0913 - one argument for each option
    *,
    image: str,
    replicas: int,
    cpu: str,
    memory: str,
    options: tuple[str, ...],
    monitoring: bool,
    all_secrets: bool,
    no_crds: bool,
    no_network_policy: bool,
    no_admission_policy: bool,
    no_admission_webhook: bool,
    is_member: bool,
    observe: bool,
) -> None:
    """Print the manifests that install a hub on a Kubernetes cluster.

    Needs no server: give the output to kubectl. The hub goes to the namespace fairway-system, or
    to the one that --namespace names. What it may do there is in the roles that are printed.
    """
    settings = Settings(
        namespace=current().namespace_given or SYSTEM,
        image=image,
        replicas=replicas,
        cpu=cpu,
        memory=memory,
        options=options,
        monitoring=monitoring,
        all_secrets=all_secrets,
        network_policy=not no_network_policy,
        admission_policy=not no_admission_policy,
        admission_webhook=not no_admission_webhook,
    )
    for fault in faults(settings):
        raise click.UsageError(fault)
    if observe and not is_member:
        raise click.UsageError("--observe belongs to --member.")
    namespace = settings.namespace
    if is_member:
        click.echo(_NEXT_OF_MEMBER.format(namespace=namespace), nl=False)
        click.echo(manifests.as_yaml(member.objects(namespace, may_act=not observe)), nl=False)
        return
    click.echo(_NEXT.format(namespace=namespace), nl=False)
    click.echo(manifests.as_yaml(manifests.objects(settings, with_kinds=not no_crds)), nl=False)
