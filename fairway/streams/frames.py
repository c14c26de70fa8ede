"""The wire format: each message is one frame, of one kind, for one talk.

    byte 0      the kind
    bytes 1-4   the number of the talk, big-endian
    the rest    depends on the kind

| kind   | the rest                                                                        |
|--------|---------------------------------------------------------------------------------|
| OPEN   | an `Ask` as JSON; only the hub opens talks, with numbers that it never uses again |
| BEGUN  | nothing: the requested stream exists and begins                                 |
| DATA   | one byte for the channel, then bytes of it                                      |
| END    | one byte for the channel: nothing more comes on it from this side               |
| CREDIT | four bytes: how many more bytes the other side may send                         |
| CLOSE  | an `Outcome` as JSON: the talk is over in both directions                       |
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from enum import IntEnum

_HEAD = struct.Struct(">BI")
_CREDIT = struct.Struct(">I")
DATA_BYTES_MOST = 32 << 10
FRAME_BYTES_MOST = 64 << 10  # an Ask may carry a long command
COST = 64  # of a frame besides its bytes, so that many small frames are bounded as well


class Kind(IntEnum):
    OPEN = 1
    BEGUN = 2
    DATA = 3
    END = 4
    CREDIT = 5
    CLOSE = 6


class BadFrame(ValueError):
    """The other side does not speak this protocol, or violates one of its limits."""


@dataclass(frozen=True, slots=True)
class Frame:
    kind: Kind
    number: int
    payload: bytes = b""

    @property
    def channel(self) -> int:
        """The channel of DATA and END."""
        if not self.payload:
            raise BadFrame("a frame names no channel")
        return self.payload[0]

    @property
    def credit(self) -> int:
        """The amount of CREDIT."""
        if len(self.payload) != _CREDIT.size:
            raise BadFrame("a credit of no amount")
        return int(_CREDIT.unpack(self.payload)[0])

    @property
    def cost(self) -> int:
        """How much of the other side's window the frame takes."""
        return COST + len(self.payload)


def data(number: int, channel: int, content: bytes) -> Frame:
    return Frame(Kind.DATA, number, bytes((channel,)) + content)


def end(number: int, channel: int) -> Frame:
    return Frame(Kind.END, number, bytes((channel,)))


def credit(number: int, amount: int) -> Frame:
    return Frame(Kind.CREDIT, number, _CREDIT.pack(amount))


def encode(frame: Frame) -> bytes:
    return _HEAD.pack(frame.kind, frame.number) + frame.payload


def decode(message: bytes) -> Frame:
    if not _HEAD.size <= len(message) <= FRAME_BYTES_MOST:
        raise BadFrame(f"a message of {len(message)} bytes is no frame")
    kind, number = _HEAD.unpack_from(message)
    try:
        return Frame(Kind(kind), number, message[_HEAD.size :])
    except ValueError as fault:
        raise BadFrame(f"there is no frame of kind {kind}") from fault
