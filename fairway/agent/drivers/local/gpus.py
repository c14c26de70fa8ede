"""NVIDIA GPUs of this machine, found through NVML.

The bindings are an optional extra (`pip install fairway[gpu]`); without them, or without a driver,
no GPUs are found.
"""

from __future__ import annotations

from dataclasses import dataclass

MIB = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Gpu:
    """One GPU; its UUID identifies it for CUDA, whatever else is on the machine."""

    uuid: str
    product: str
    memory_mib: int


def find_gpus() -> tuple[Gpu, ...]:
    """The GPUs, in the order of the driver."""
    try:
        import pynvml  # noqa: PLC0415 - an optional extra
    except ImportError:
        return ()
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        return ()  # no driver, or none that answers
    try:
        handles = [
            pynvml.nvmlDeviceGetHandleByIndex(index) for index in range(pynvml.nvmlDeviceGetCount())
        ]
        return tuple(
            Gpu(
                uuid=_text(pynvml.nvmlDeviceGetUUID(handle)),
                product=_text(pynvml.nvmlDeviceGetName(handle)),
                memory_mib=int(pynvml.nvmlDeviceGetMemoryInfo(handle).total) // MIB,
            )
            for handle in handles
        )
    except pynvml.NVMLError:
        return ()
    finally:
        pynvml.nvmlShutdown()


def _text(value: str | bytes) -> str:
    """The text of a value; older bindings return bytes."""
    return value.decode() if isinstance(value, bytes) else value
