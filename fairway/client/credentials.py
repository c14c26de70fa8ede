"""The credentials of a client at the time of a call.

A token file is read again when it changes. A plug-in is run again when its credential expires or is
refused. So a client may live longer than its credentials.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec

from fairway.client.access import Access, ExecPlugin
from fairway.client.errors import ConfigError
from fairway.clock import Clock, parse_timestamp

# A plug-in is run again this long before its credential expires.
EARLY_SECONDS = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """What the server gets to see: a token, a certificate, or both."""

    token: str = ""
    certificate: bytes = b""
    key: bytes = b""
    expires_at: float | None = None


class _ExecStatus(msgspec.Struct, rename="camel"):
    token: str = ""
    client_certificate_data: str = ""
    client_key_data: str = ""
    expiration_timestamp: str | None = None


class _ExecCredential(msgspec.Struct):
    status: _ExecStatus


class Credentials:
    """The current identity of one access."""

    def __init__(self, access: Access, clock: Clock) -> None:
        self._access = access
        self._clock = clock
        self._given: Identity | None = None
        self._lock = asyncio.Lock()
        self._token_file: tuple[int, str] = (-1, "")

    async def current(self) -> Identity:
        """The identity to use now."""
        access = self._access
        if access.exec_plugin is not None:
            return await self._from_plugin(access.exec_plugin)
        token = access.token
        if access.token_file is not None:
            token = self._from_file(access.token_file)
        return Identity(token=token, certificate=access.certificate, key=access.key)

    def show(self, token: str) -> None:
        """Replaces the configured token."""
        self._access = replace(self._access, token=token)

    def refuse(self) -> bool:
        """Drops an identity that the server refused; true when running the plug-in may help."""
        had_given = self._given is not None
        self._given = None
        self._token_file = (-1, "")
        return had_given

    def _from_file(self, path: Path) -> str:
        try:
            changed = path.stat().st_mtime_ns
            if changed != self._token_file[0]:
                self._token_file = (changed, path.read_text().strip())
        except OSError as error:
            raise ConfigError(f"cannot read the token file {path}: {error.strerror}") from error
        return self._token_file[1]

    async def _from_plugin(self, plugin: ExecPlugin) -> Identity:
        async with self._lock:
            given = self._given
            if given is not None and (
                given.expires_at is None or given.expires_at - EARLY_SECONDS > self._clock.now()
            ):
                return given
            self._given = await _run_plugin(plugin)
            return self._given


async def _run_plugin(plugin: ExecPlugin) -> Identity:
    request = {"apiVersion": plugin.api_version, "kind": "ExecCredential"}
    info = msgspec.json.encode({**request, "spec": {"interactive": False}}).decode()
    environment = {**os.environ, **dict(plugin.environment), "KUBERNETES_EXEC_INFO": info}
    try:
        process = await asyncio.create_subprocess_exec(
            plugin.command,
            *plugin.arguments,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
        )
    except OSError as error:
        hint = f"\n{plugin.install_hint}" if plugin.install_hint else ""
        raise ConfigError(
            f"cannot run the credential plug-in {plugin.command}: {error.strerror}{hint}"
        ) from error
    output, _ = await process.communicate()
    if process.returncode != 0:
        raise ConfigError(
            f"the credential plug-in {plugin.command} failed with exit code {process.returncode}"
        )
    return _read_credential(plugin, output)


def _read_credential(plugin: ExecPlugin, output: bytes) -> Identity:
    try:
        status = msgspec.json.decode(output, type=_ExecCredential).status
        expiry = status.expiration_timestamp
        expires_at = parse_timestamp(expiry) if expiry else None
    except (msgspec.MsgspecError, ValueError) as error:
        raise ConfigError(
            f"the credential plug-in {plugin.command} printed no valid ExecCredential: {error}"
        ) from error
    return Identity(
        token=status.token,
        certificate=status.client_certificate_data.encode(),
        key=status.client_key_data.encode(),
        expires_at=expires_at,
    )
