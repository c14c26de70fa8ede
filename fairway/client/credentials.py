"""Who we are, at the moment of a call.

Tokens in files are re-read when the file changes, and plug-ins are asked again when what they
gave has run out or was refused, so that a client may live longer than its credentials.
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

# Plug-ins are asked again this long before what they gave runs out.
EARLY_SECONDS = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """What is shown to the server: a token, a certificate, or both."""

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
        """Another token takes the place of the one that was given."""
        self._access = replace(self._access, token=token)

    def refuse(self) -> bool:
        """The server refused this identity; true when asking again may help."""
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
