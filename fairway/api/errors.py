"""The errors of the API, in one tree.

    ApiError                      any refusal, with its HTTP code and Kubernetes reason
    ├── BadRequest       400      cannot be understood
    ├── Unauthorized     401      no identity
    ├── Forbidden        403      no right
    ├── NotFound         404
    ├── MethodNotAllowed 405
    ├── NotAcceptable    406
    ├── AlreadyExists    409
    ├── Conflict         409      version, precondition or field ownership
    ├── Expired          410      the version asked for is compacted
    ├── TooLarge         413
    ├── UnsupportedMediaType 415
    ├── Invalid          422      understood, and invalid: one FieldError per fault
    ├── TooManyRequests  429
    ├── InternalError    500
    ├── Unavailable      503
    └── Timeout          504

Errors are values on the wire (`Status` objects), so each can be made from one and turned into one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import msgspec


@dataclass(frozen=True, slots=True)
class FieldError:
    """One fault in an object: where, of which type, and what to do about it."""

    path: str
    type: str
    message: str
    value: Any = None
    has_value: bool = False

    def __str__(self) -> str:
        head = _HEADS[self.type]
        shown = f": {show_value(self.value)}" if self.has_value else ""
        tail = f": {self.message}" if self.message else ""
        return f"{self._where}: {head}{shown}{tail}"

    @property
    def _where(self) -> str:
        return readable(self.path) or "<nil>"

    def cause(self) -> dict[str, str]:
        """The fault as an entry of `Status.details.causes`."""
        text = str(self)
        return {
            "reason": self.type,
            "message": text.removeprefix(f"{self._where}: "),
            "field": self._where,
        }


# Further faults are not listed: the message would be too long to read.
FAULTS_MAX = 100

_HEADS: Mapping[str, str] = {
    "FieldValueInvalid": "Invalid value",
    "FieldValueTypeInvalid": "Invalid value",
    "FieldValueRequired": "Required value",
    "FieldValueNotSupported": "Unsupported value",
    "FieldValueForbidden": "Forbidden",
    "FieldValueTooLong": "Too long",
    "FieldValueTooMany": "Too many",
    "FieldValueDuplicate": "Duplicate value",
    "FieldValueNotFound": "Not found",
}


def show_value(value: Any) -> str:
    """A value as Kubernetes shows it in an error: JSON, truncated if long."""
    try:
        text = msgspec.json.encode(value).decode()
    except (TypeError, ValueError, msgspec.MsgspecError):
        text = repr(value)
    return text if len(text) <= 512 else text[:509] + "..."


def readable(text: str, *, keep: str = "") -> str:
    """Text with unprintable characters escaped, for terminals and headers.

    Messages repeat names chosen by a client, which may contain anything.
    """
    if text.isprintable():
        return text
    return "".join(
        name if name.isprintable() or name in keep else name.encode("unicode_escape").decode()
        for name in text
    )


def invalid(path: str, value: Any, message: str) -> FieldError:
    return FieldError(path, "FieldValueInvalid", message, value, has_value=True)


def wrong_type(path: str, value: Any, want: str) -> FieldError:
    """A value of the wrong JSON type, worded as the structural-schema validator words it."""
    got = json_type(value)
    message = f"{path} in body must be of type {want}: {show_value(got)}"
    return FieldError(path, "FieldValueTypeInvalid", message, got, has_value=True)


def required_field(path: str, message: str = "") -> FieldError:
    return FieldError(path, "FieldValueRequired", message)


def forbidden(path: str, message: str) -> FieldError:
    return FieldError(path, "FieldValueForbidden", message)


def duplicate(path: str, value: Any) -> FieldError:
    return FieldError(path, "FieldValueDuplicate", "", value, has_value=True)


def too_long(path: str, limit: int) -> FieldError:
    return FieldError(path, "FieldValueTooLong", f"may not be more than {limit} bytes")


def too_many(path: str, count: int, limit: int) -> FieldError:
    message = f"must have at most {limit} items"
    return FieldError(path, "FieldValueTooMany", message, count, has_value=True)


def not_supported(path: str, value: Any, allowed: Sequence[Any]) -> FieldError:
    message = "supported values: " + ", ".join(show_value(item) for item in allowed)
    return FieldError(path, "FieldValueNotSupported", message, value, has_value=True)


def json_type(value: Any) -> str:
    """The JSON name of a value's type."""
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int():
            return "integer"
        case float():
            return "number"
        case str():
            return "string"
        case list() | tuple():
            return "array"
        case _:
            return "object"


class ApiError(Exception):
    """A refusal: HTTP code, machine-readable reason and a sentence for people."""

    code: ClassVar[int] = 500
    reason: ClassVar[str] = "InternalError"

    def __init__(self, message: str, *, details: Mapping[str, Any] | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.details: dict[str, Any] = dict(details or {})
        self._has_details = details is not None

    def status(self) -> dict[str, Any]:
        """The error as a Kubernetes `Status` object."""
        status: dict[str, Any] = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": readable(self.message, keep="\n"),
            "reason": self.reason,
            "code": self.code,
        }
        if self._has_details:
            status["details"] = self.details
        return status


class BadRequest(ApiError):
    code, reason = 400, "BadRequest"


class Unauthorized(ApiError):
    code, reason = 401, "Unauthorized"


class Forbidden(ApiError):
    code, reason = 403, "Forbidden"


class NotFound(ApiError):
    code, reason = 404, "NotFound"


class MethodNotAllowed(ApiError):
    code, reason = 405, "MethodNotAllowed"


class NotAcceptable(ApiError):
    code, reason = 406, "NotAcceptable"


class AlreadyExists(ApiError):
    code, reason = 409, "AlreadyExists"


class Conflict(ApiError):
    code, reason = 409, "Conflict"


class Expired(ApiError):
    code, reason = 410, "Expired"


class TooLarge(ApiError):
    code, reason = 413, "RequestEntityTooLarge"


class UnsupportedMediaType(ApiError):
    code, reason = 415, "UnsupportedMediaType"


class Invalid(ApiError):
    """An object that is understood and invalid."""

    code, reason = 422, "Invalid"

    @classmethod
    def of(cls, kind: str, group: str, name: str, faults: Sequence[FieldError]) -> Invalid:
        """All faults of one object in one error, as Kubernetes words it."""
        qualified = f"{kind}.{group}" if group else kind
        faults = faults[:FAULTS_MAX]
        listed = (
            "; ".join(map(str, faults))
            if len(faults) == 1
            else ("[" + ", ".join(map(str, faults)) + "]")
        )
        return cls(
            f'{qualified} "{name}" is invalid: {listed}',
            details={
                **({"name": name} if name else {}),
                **({"group": group} if group else {}),
                "kind": kind,
                "causes": [fault.cause() for fault in faults],
            },
        )


class TooManyRequests(ApiError):
    code, reason = 429, "TooManyRequests"


class InternalError(ApiError):
    code, reason = 500, "InternalError"


class Unavailable(ApiError):
    code, reason = 503, "ServiceUnavailable"


class Timeout(ApiError):
    code, reason = 504, "Timeout"


class InsufficientStorage(ApiError):
    code, reason = 507, "InsufficientStorage"


_BY_REASON: dict[str, type[ApiError]] = {kind.reason: kind for kind in ApiError.__subclasses__()}
_BY_CODE: dict[int, type[ApiError]] = {}
for _kind in ApiError.__subclasses__():
    _BY_CODE.setdefault(_kind.code, _kind)


def from_status(status: Mapping[str, Any], code: int = 500) -> ApiError:
    """The error that a `Status` object describes; raised by clients."""
    code = int(status.get("code") or code)
    kind = _BY_REASON.get(str(status.get("reason", ""))) or _BY_CODE.get(code, InternalError)
    details = status.get("details")
    message = str(status.get("message") or f"the server answered {code}")
    return kind(message, details=details if isinstance(details, Mapping) else None)
