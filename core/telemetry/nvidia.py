"""NVIDIA GPUs through the driver's own library (NVML). Blocks: runs on the telemetry thread."""

from __future__ import annotations

import ctypes
import importlib
import sys
from collections.abc import Callable
from typing import Any

from core.vocabulary.readings import GpuReading
from core.vocabulary.text import joined

NO_DRIVER = "no NVIDIA driver"
LIBRARY = "libnvidia-ml.so.1"


class Nvidia:
    """NVML is open from ``open`` to ``close``. ``nvml`` is the module ``pynvml``, or a stand-in for it."""

    def __init__(self, nvml: Any, handles: list[Any], names: tuple[str, ...]) -> None:
        self._nvml = nvml
        self._handles = handles
        self.names = names

    @classmethod
    def open(cls, nvml: Any = None, library: str = LIBRARY) -> Nvidia | str:
        """The GPUs, or why there are none. ``library``: the driver's, on Linux."""
        if nvml is None:
            if not _is_there(library):
                return NO_DRIVER
            nvml = importlib.import_module("pynvml")
        try:
            nvml.nvmlInit()
        except nvml.NVMLError as error:
            return _why_closed(nvml, error)
        try:
            handles = [nvml.nvmlDeviceGetHandleByIndex(index) for index in range(nvml.nvmlDeviceGetCount())]
            names = tuple(_text(nvml.nvmlDeviceGetName(handle)) for handle in handles)
        except nvml.NVMLError as error:
            nvml.nvmlShutdown()
            return f"the NVIDIA driver does not list its GPUs ({error})"
        if not handles:
            nvml.nvmlShutdown()
            return "the NVIDIA driver finds no GPU"
        return cls(nvml, handles, names)

    def read(self) -> tuple[GpuReading, ...]:
        return tuple(self._one(*pair) for pair in zip(self._handles, self.names, strict=True))

    def close(self) -> None:
        try:
            self._nvml.nvmlShutdown()
        except self._nvml.NVMLError:
            pass

    def _one(self, handle: Any, name: str) -> GpuReading:
        nvml, reasons = self._nvml, []

        def reading(what: str, ask: Callable[[], Any]) -> Any:
            try:
                return ask()
            except nvml.NVMLError as error:
                reasons.append(f"no {what}: {_why_missing(nvml, error)}")
                return None

        use = reading("use", lambda: float(nvml.nvmlDeviceGetUtilizationRates(handle).gpu))
        memory = reading("memory", lambda: nvml.nvmlDeviceGetMemoryInfo(handle))
        temperature = reading(
            "temperature", lambda: float(nvml.nvmlDeviceGetTemperature(handle, nvml.NVML_TEMPERATURE_GPU))
        )
        milliwatts = reading("power", lambda: nvml.nvmlDeviceGetPowerUsage(handle))
        return GpuReading(
            name=name,
            use_pct=use,
            memory_used_bytes=None if memory is None else int(memory.used),
            memory_total_bytes=None if memory is None else int(memory.total),
            temperature_c=temperature,
            power_w=None if milliwatts is None else milliwatts / 1000,
            why=joined(reasons),
        )


def _is_there(library: str) -> bool:
    """Whether the driver's library is installed: importing ``pynvml`` without need would cost 2.5 MB. Always
    true on other systems than Linux, where ``pynvml`` searches several places."""
    if sys.platform == "linux":
        try:
            ctypes.CDLL(library)
        except OSError:
            return False
    return True


def _why_closed(nvml: Any, error: Exception) -> str:
    code = getattr(error, "value", None)
    if code == nvml.NVML_ERROR_LIBRARY_NOT_FOUND:
        return NO_DRIVER
    if code == nvml.NVML_ERROR_DRIVER_NOT_LOADED:
        return "the NVIDIA driver is installed but not loaded (restart the laptop)"
    if code == nvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH:
        return "the NVIDIA driver was updated after the laptop started (restart it)"
    if code == nvml.NVML_ERROR_NO_PERMISSION:
        return "this user may not use the NVIDIA driver"
    return f"the NVIDIA driver does not answer ({error})"


def _why_missing(nvml: Any, error: Exception) -> str:
    code = getattr(error, "value", None)
    if code == nvml.NVML_ERROR_NOT_SUPPORTED:
        return "this GPU does not report it"
    if code == nvml.NVML_ERROR_NO_PERMISSION:
        return "this user may not read it"
    if code == nvml.NVML_ERROR_GPU_IS_LOST:
        return "the GPU has fallen off the bus (restart the laptop)"
    return str(error)


def _text(name: Any) -> str:
    return name.decode("utf-8", "replace") if isinstance(name, bytes) else str(name)
