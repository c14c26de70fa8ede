"""The page: static files without authentication, since all data comes from the API afterwards.

A browser that requests `/` is redirected to the page; other clients get the list of paths. The
security policy lets the page load only what the hub itself serves, and data: images: no inline
script or style, no frame, no other host. Asset names contain a digest of their content, so browsers
keep them for good; the document is revalidated each time, and not sent again while unchanged.
"""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath

from fairway.server.wire.exchange import Request, Response

PREFIX = "/page/"
_DOCUMENT = "index.html"
_ASSETS = "assets/"
_POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data:",
        "font-src 'self'",
        "connect-src 'self'",
        "manifest-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    )
)
SAFETY = {
    "Content-Security-Policy": _POLICY,
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".svg": "image/svg+xml",
    ".webmanifest": "application/manifest+json",
    ".woff2": "font/woff2",
}
_PACKED = frozenset({".css", ".html", ".js", ".svg"})


@dataclass(frozen=True, slots=True, kw_only=True)
class _File:
    """A file as it is sent, plain and compressed."""

    plain: bytes
    packed: bytes | None
    content_type: str
    etag: str
    cache_control: str


class Page:
    """Serves the page's files; `files` are by path, from `fairway.page`."""

    def __init__(self, files: Mapping[str, bytes]) -> None:
        self._files = {name: _prepare(name, content) for name, content in files.items()}

    def answer(self, request: Request) -> Response | None:
        """The response to a request for the page; None: the request is for something else."""
        if request.method not in ("GET", "HEAD") or not self._files:
            return None
        if request.path == PREFIX.rstrip("/") or _is_front_door(request):
            return Response(status=302, headers={"Location": PREFIX, "Vary": "Accept", **SAFETY})
        if not request.path.startswith(PREFIX):
            return None
        file = self._files.get(request.path.removeprefix(PREFIX) or _DOCUMENT)
        if file is None:
            return Response(
                status=404,
                body=b"There is no such file.\n",
                content_type="text/plain; charset=utf-8",
                headers=dict(SAFETY),
            )
        return _send(file, request)


def _is_front_door(request: Request) -> bool:
    """Whether a browser requests `/`: browsers accept HTML, other clients JSON or anything."""
    return request.path == "/" and "text/html" in request.header("accept")


def _prepare(name: str, content: bytes) -> _File:
    suffix = PurePosixPath(name).suffix
    keeps = "public, max-age=31536000, immutable" if name.startswith(_ASSETS) else "no-cache"
    return _File(
        plain=content,
        # A fixed mtime, so that the same file always compresses to the same bytes.
        packed=gzip.compress(content, mtime=0) if suffix in _PACKED else None,
        content_type=_TYPES.get(suffix, "application/octet-stream"),
        etag=f'"{hashlib.sha256(content).hexdigest()[:32]}"',
        cache_control=keeps,
    )


def _send(file: _File, request: Request) -> Response:
    headers = {
        **SAFETY,
        "Cache-Control": file.cache_control,
        "ETag": file.etag,
        "Vary": "Accept-Encoding",
    }
    known = {part.strip().removeprefix("W/") for part in request.header("if-none-match").split(",")}
    if file.etag in known or "*" in known:
        return Response(status=304, content_type=file.content_type, headers=headers)
    body = file.plain
    if file.packed is not None and "gzip" in request.header("accept-encoding"):
        headers["Content-Encoding"] = "gzip"
        body = file.packed
    return Response(body=body, content_type=file.content_type, headers=headers)
