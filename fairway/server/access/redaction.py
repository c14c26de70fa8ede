"""Removes secrets from text before it is written anywhere.

Four forms are known: what follows `Bearer` or `Basic`, query parameters whose name contains token,
password, secret or API key, bearer tokens in a WebSocket subprotocol, and JSON web tokens anywhere.
Tokens should never get near a log; this is the safety net.
"""

from __future__ import annotations

import re

HIDDEN = "[hidden]"
# Nearly every text has none of these, and one search finds that out.
_HINT = re.compile(r"(?i)bearer|basic|token|password|secret|key|eyJ")
_BEARER = re.compile(r"(\b(?:[Bb]earer|BEARER|Basic)(?:[\s:=+]|%20)+)[\w.~+/=-]{6,}")
_PARAMETER = re.compile(
    r"(?i)([?&;][\w.-]*(?:token|password|secret|api[_-]?key)[\w.-]*=)[^&\s\"']+"
)
_HEADER = re.compile(r"(?i)(\bbase64url\.bearer\.authorization\.k8s\.io\.)[\w-]+")
_WEB_TOKEN = re.compile(r"\beyJ[\w-]{8,}\.[\w-]+\.[\w-]*")


def redact(text: str) -> str:
    """The text without anything that looks like a secret."""
    if not _HINT.search(text):
        return text
    text = _BEARER.sub(rf"\1{HIDDEN}", text)
    text = _PARAMETER.sub(rf"\1{HIDDEN}", text)
    text = _HEADER.sub(rf"\1{HIDDEN}", text)
    return _WEB_TOKEN.sub(HIDDEN, text)
