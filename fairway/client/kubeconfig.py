"""From kubeconfig files to an `Access`.

Places are tried in this order: the file given; those named by KUBECONFIG (merged, the first entry
of a name wins); the file that a hub on this machine wrote; the one in the home folder; inside a
pod, the service account. The first place that has any is used.
"""

from __future__ import annotations

import base64
import binascii
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import yaml

from fairway.client.access import Access, ExecPlugin
from fairway.client.errors import ConfigError

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A named cluster, user or context, and the folder its relative paths start from."""

    name: str
    body: Mapping[str, Any]
    file: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Kubeconfig:
    """Several files, merged."""

    files: tuple[Path, ...]
    clusters: Mapping[str, Entry]
    users: Mapping[str, Entry]
    contexts: Mapping[str, Entry]
    current_context: str


def data_home() -> Path:
    """The folder that a hub on this machine uses by default."""
    home = os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share"
    return Path(home) / "fairway"


def places(given: str | None = None) -> list[Path]:
    """The files to read, in order. Missing ones are left out, except a file that was given."""
    if given:
        return [Path(given).expanduser()]
    listed = [Path(part) for part in os.environ.get("KUBECONFIG", "").split(os.pathsep) if part]
    if listed:
        return [path for path in listed if path.exists()]
    for path in (data_home() / "kubeconfig", Path.home() / ".kube" / "config"):
        if path.exists():
            return [path]
    return []


def load_access(given: str | None = None, *, context: str = "") -> Access:
    """The access that the user's configuration describes."""
    files = places(given)
    if not files:
        access = from_service_account()
        if access is not None:
            return access
        raise ConfigError(
            "no kubeconfig found: start a hub with `fairway up`, or name a file with --kubeconfig"
        )
    return access_of(read(files), context)


def read(files: Sequence[Path]) -> Kubeconfig:
    """Reads and merges kubeconfig files."""
    return _merge([(file, _parse(file)) for file in files])


def access_of_text(text: str, *, source: str, context: str = "") -> Access:
    """The access that a kubeconfig from an untrusted source describes.

    It may neither run programs nor read files of this machine.
    """
    try:
        content = yaml.safe_load(text) or {}
    except yaml.YAMLError as error:
        reason = " ".join(str(error).split())
        raise ConfigError(f"{source} is not valid YAML: {reason}") from error
    if not isinstance(content, Mapping):
        raise ConfigError(f"{source} is not a mapping")
    for plural, singular, keys in _OF_THIS_MACHINE:
        for item in content.get(plural) or ():
            for key in keys:
                if (item.get(singular) or {}).get(key):
                    raise ConfigError(
                        f"{plural}[{item.get('name')}].{key}: {source} may not name a file or a "
                        "program; put the data itself there"
                    )
    return access_of(_merge([(Path(source), content)]), context)


_OF_THIS_MACHINE = (
    ("clusters", "cluster", ("certificate-authority",)),
    ("users", "user", ("client-certificate", "client-key", "tokenFile", "exec", "auth-provider")),
)


def _merge(contents: Sequence[tuple[Path, Mapping[str, Any]]]) -> Kubeconfig:
    clusters: dict[str, Entry] = {}
    users: dict[str, Entry] = {}
    contexts: dict[str, Entry] = {}
    current = ""
    for file, content in contents:
        current = current or str(content.get("current-context") or "")
        for plural, singular, entries in (
            ("clusters", "cluster", clusters),
            ("users", "user", users),
            ("contexts", "context", contexts),
        ):
            for item in content.get(plural) or ():
                entry = Entry(name=str(item["name"]), body=item.get(singular) or {}, file=file)
                entries.setdefault(entry.name, entry)
    return Kubeconfig(
        files=tuple(file for file, _ in contents),
        clusters=clusters,
        users=users,
        contexts=contexts,
        current_context=current,
    )


def access_of(config: Kubeconfig, context: str = "") -> Access:
    """One context of a kubeconfig as an access."""
    source = os.pathsep.join(map(str, config.files))
    name = context or config.current_context
    if not name:
        raise ConfigError(f"{source} names no current context; choose one with --context")
    if name not in config.contexts:
        known = ", ".join(sorted(config.contexts)) or "none"
        raise ConfigError(f'there is no context "{name}" in {source} (known: {known})')
    body = config.contexts[name].body
    cluster = config.clusters.get(str(body.get("cluster")))
    if cluster is None or not cluster.body.get("server"):
        raise ConfigError(f'context "{name}" in {source} names no cluster with a server')
    access = Access(
        server=str(cluster.body["server"]).rstrip("/"),
        namespace=str(body.get("namespace") or "default"),
        context=name,
        source=source,
        authority=_content(cluster, "certificate-authority"),
        is_insecure=bool(cluster.body.get("insecure-skip-tls-verify")),
        tls_server_name=str(cluster.body.get("tls-server-name") or ""),
        proxy=str(cluster.body.get("proxy-url") or ""),
    )
    if not body.get("user"):
        return access
    user = config.users.get(str(body["user"]))
    if user is None:
        raise ConfigError(f'context "{name}" in {source} names a user that is not there')
    return _with_user(access, user)


def from_service_account(
    folder: Path = SERVICE_ACCOUNT, environment: Callable[[str], str | None] = os.environ.get
) -> Access | None:
    """The access of a pod by its service account; None outside a pod."""
    host, port = environment("KUBERNETES_SERVICE_HOST"), environment("KUBERNETES_SERVICE_PORT")
    if not host or not port or not (folder / "token").exists():
        return None
    namespace, authority = folder / "namespace", folder / "ca.crt"
    return Access(
        server=f"https://{f'[{host}]' if ':' in host else host}:{port}",
        namespace=namespace.read_text().strip() if namespace.exists() else "default",
        source=str(folder),
        authority=authority.read_bytes() if authority.exists() else b"",
        token_file=folder / "token",
    )


def use_context(config: Kubeconfig, name: str) -> Path:
    """Makes a context the current one; returns the file that was changed."""
    if name not in config.contexts:
        raise ConfigError(f'there is no context "{name}"')
    naming = [file for file in config.files if _parse(file).get("current-context")]
    file = (naming or list(config.files))[0]
    content = dict(_parse(file))
    content["current-context"] = name
    # Written to a new file and renamed: a crash of this process leaves the old or the new, whole.
    beside = file.with_name(file.name + ".new")
    beside.touch(mode=0o600)
    beside.write_text(yaml.safe_dump(content, sort_keys=False))
    beside.replace(file)
    return file


def _with_user(access: Access, user: Entry) -> Access:
    body = user.body
    token_file = body.get("tokenFile")
    plugin = body.get("exec")
    return replace(
        access,
        certificate=_content(user, "client-certificate"),
        key=_content(user, "client-key"),
        token=str(body.get("token") or ""),
        token_file=user.file.parent / str(token_file) if token_file else None,
        exec_plugin=_plugin(user, plugin) if plugin else None,
    )


def _plugin(user: Entry, body: Mapping[str, Any]) -> ExecPlugin:
    command = str(body.get("command") or "")
    if "/" in command and not command.startswith("/"):
        command = str(user.file.parent / command)
    return ExecPlugin(
        command=command,
        arguments=tuple(map(str, body.get("args") or ())),
        environment=tuple(
            (str(variable["name"]), str(variable["value"])) for variable in body.get("env") or ()
        ),
        api_version=str(body.get("apiVersion") or "client.authentication.k8s.io/v1"),
        install_hint=str(body.get("installHint") or "").strip(),
    )


def _content(entry: Entry, key: str) -> bytes:
    """A certificate or key: inline in the kubeconfig, or in a file it names."""
    try:
        if data := entry.body.get(f"{key}-data"):
            return base64.b64decode(data, validate=True)
        if name := entry.body.get(key):
            return (entry.file.parent / str(name)).read_bytes()
    except binascii.Error as error:
        raise ConfigError(f'{key}-data of "{entry.name}" in {entry.file} is not base64') from error
    except OSError as error:
        raise ConfigError(f'{key} of "{entry.name}" in {entry.file}: {error}') from error
    return b""


def _parse(file: Path) -> Mapping[str, Any]:
    try:
        content = yaml.safe_load(file.read_text()) or {}
    except OSError as error:
        raise ConfigError(f"cannot read the kubeconfig {file}: {error.strerror}") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        reason = " ".join(str(error).split())
        raise ConfigError(f"the kubeconfig {file} is not valid YAML: {reason}") from error
    if not isinstance(content, Mapping):
        raise ConfigError(f"the kubeconfig {file} is not a mapping")
    return content
