"""Valid forms of names inside objects, and Kubernetes' messages for invalid ones."""

from __future__ import annotations

import re

_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_SERVICE = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
_KEY = re.compile(r"[-._a-zA-Z0-9]+")

_LABEL_WORDS = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and "
    "must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used "
    "for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)
_SERVICE_WORDS = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an "
    "alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', "
    "regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')"
)
_SUBDOMAIN_WORDS = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or "
    "'.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used "
    "for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
_KEY_WORDS = (
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. "
    "'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')"
)


def label_fault(name: str) -> str:
    """What is wrong with a DNS label; empty if nothing."""
    return _fault(name, _LABEL, 63, _LABEL_WORDS)


def service_fault(name: str) -> str:
    """What is wrong with a DNS label that begins with a letter; empty if nothing."""
    return _fault(name, _SERVICE, 63, _SERVICE_WORDS)


def subdomain_fault(name: str) -> str:
    """What is wrong with a DNS name; empty if nothing."""
    return _fault(name, _SUBDOMAIN, 253, _SUBDOMAIN_WORDS)


def key_fault(name: str) -> str:
    """What is wrong with a key of a ConfigMap or Secret; empty if nothing."""
    if name in (".", ".."):
        return f"must not be '{name}'"
    if name.startswith(".."):
        return "must not start with '..'"
    return _fault(name, _KEY, 253, _KEY_WORDS)


def _fault(name: str, form: re.Pattern[str], limit: int, words: str) -> str:
    if len(name) > limit:
        return f"must be no more than {limit} bytes"
    return "" if form.fullmatch(name) else words
