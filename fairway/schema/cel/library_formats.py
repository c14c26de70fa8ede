"""Kubernetes' named formats: `format.dns1123Label().validate(text)`.

Both `validate` and `format.named` return an optional, which Python cannot pass to the runtime. They
return a map with at most one entry instead, and `environment` rewrites each call into an optional
selection of that entry: `….validate(text)[?'faults']`.
"""

from __future__ import annotations

import base64
import datetime
import re
from collections.abc import Callable, Mapping

from fairway.schema.cel.declared import Declared, Opaque, function, method, open_value
from fairway.schema.cel.library_network import parse_url

# The functions that return an optional, with the map entry that it is made from.
OPTIONAL_ANSWERS: Mapping[str, str] = {".validate(": "faults", "format.named(": "named"}

_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_LABEL_1035 = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
_NAME = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")
_UUID = re.compile(r"(?i)[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_DATE_TIME = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt ][0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]+)?"
    r"([Zz]|[+-][0-9]{2}:[0-9]{2})?"
)

Check = Callable[[str], list[str]]


def _by_pattern(pattern: re.Pattern[str], length_most: int, wanted: str) -> Check:
    def check(text: str) -> list[str]:
        faults = []
        if len(text) > length_most:
            faults.append(f"must be no more than {length_most} bytes")
        if not pattern.fullmatch(text):
            faults.append(f"must be {wanted}")
        return faults

    return check


def _as_prefix(check: Check) -> Check:
    """Checks a name prefix, which may end with a dash."""
    return lambda text: check(text[:-2] + "a" if len(text) > 1 and text.endswith("-") else text)


def _qualified_name(text: str) -> list[str]:
    prefix, slash, name = text.rpartition("/")
    faults = [f"name part {fault}" for fault in _name_part(name)]
    if slash:
        faults = [f"prefix part {fault}" for fault in _subdomain(prefix)] + faults
    return faults


def _label_value(text: str) -> list[str]:
    return _name_part(text) if text else []


def _by_trial(parse: Callable[[str], object], wanted: str) -> Check:
    def check(text: str) -> list[str]:
        try:
            parse(text)
        except ValueError:
            return [f"must be {wanted}"]
        return []

    return check


def _date(text: str) -> None:
    if not _DATE.fullmatch(text):
        raise ValueError(text)
    datetime.date.fromisoformat(text)


def _date_time(text: str) -> None:
    if not _DATE_TIME.fullmatch(text):
        raise ValueError(text)
    datetime.datetime.fromisoformat(text.upper())


_label = _by_pattern(_LABEL, 63, "lowercase letters, digits and inner dashes")
_subdomain = _by_pattern(_SUBDOMAIN, 253, "lowercase letters, digits, inner dashes and inner dots")
_label_1035 = _by_pattern(_LABEL_1035, 63, "a lowercase letter, then letters, digits, inner dashes")
_name_part = _by_pattern(_NAME, 63, "letters and digits, with '-', '_' or '.' only inside")

FORMATS: Mapping[str, Check] = {
    "dns1123Label": _label,
    "dns1123Subdomain": _subdomain,
    "dns1035Label": _label_1035,
    "qualifiedName": _qualified_name,
    "dns1123LabelPrefix": _as_prefix(_label),
    "dns1123SubdomainPrefix": _as_prefix(_subdomain),
    "dns1035LabelPrefix": _as_prefix(_label_1035),
    "labelValue": _label_value,
    "uri": _by_trial(parse_url, "an absolute URL or an absolute path"),
    "uuid": _by_pattern(_UUID, 36, "a UUID"),
    "byte": _by_trial(lambda text: base64.b64decode(text, validate=True), "valid base64"),
    "date": _by_trial(_date, "a valid date"),
    "datetime": _by_trial(_date_time, "a valid date and time"),
}


def _validate(chosen: Opaque, text: str) -> dict[str, list[str]]:
    faults = FORMATS[open_value(chosen, "format")](text)
    return {"faults": faults} if faults else {}


def _name(name: str) -> dict[str, Opaque]:
    return {"named": {"format": name}} if name in FORMATS else {}


def _constant(name: str) -> Declared:
    return function(f"format.{name}", (), "map", lambda: {"format": name})


FUNCTIONS: tuple[Declared, ...] = (
    function("format.named", ("string",), "map", _name),
    method("validate", ("map", "string"), "map<string,list<string>>", _validate),
    *map(_constant, FORMATS),
)
