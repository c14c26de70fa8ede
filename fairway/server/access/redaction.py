"""Takes secrets out of text before it is written anywhere.

Three shapes are known: what follows `Bearer`, query parameters whose name says token, password or
secret, and JSON web tokens wherever they stand. Tokens should never come near a log; this is the
net below.
"""

from __future__ import annotations

import re

HIDDEN = "[hidden]"
# Nearly every text is without any of these, and finding that out costs one search.
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
