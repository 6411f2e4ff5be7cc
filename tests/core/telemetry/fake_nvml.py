"""A stand-in for ``pynvml``: Tandem's calls, with two GPUs or with an error."""

from __future__ import annotations

from types import SimpleNamespace


class NVMLError(Exception):
    def __init__(self, value: int) -> None:
        super().__init__(f"error {value}")
        self.value = value


class FakeNvml:
    NVMLError = NVMLError
    NVML_ERROR_NOT_SUPPORTED = 3
    NVML_ERROR_NO_PERMISSION = 4
    NVML_ERROR_DRIVER_NOT_LOADED = 9
    NVML_ERROR_LIBRARY_NOT_FOUND = 12
    NVML_ERROR_GPU_IS_LOST = 15
    NVML_ERROR_LIB_RM_VERSION_MISMATCH = 18
    NVML_TEMPERATURE_GPU = 0

    def __init__(self, *, init_error: int = 0, count: int = 2, missing: dict[str, int] | None = None) -> None:
        self._init_error = init_error
        self._count = count
        self.missing = missing or {}
        self.open = False

    def _check(self, what: str) -> None:
        if what in self.missing:
            raise NVMLError(self.missing[what])

    def nvmlInit(self) -> None:
        if self._init_error:
            raise NVMLError(self._init_error)
        self.open = True

    def nvmlShutdown(self) -> None:
        self.open = False

    def nvmlDeviceGetCount(self) -> int:
        self._check("count")
        return self._count

    def nvmlDeviceGetHandleByIndex(self, index: int) -> int:
        return index

    def nvmlDeviceGetName(self, handle: int) -> str:
        return f"NVIDIA Test {handle}"

    def nvmlDeviceGetUtilizationRates(self, handle: int) -> SimpleNamespace:
        self._check("use")
        return SimpleNamespace(gpu=40 + handle)

    def nvmlDeviceGetMemoryInfo(self, handle: int) -> SimpleNamespace:
        self._check("memory")
        return SimpleNamespace(used=1 << 30, total=8 << 30)

    def nvmlDeviceGetTemperature(self, handle: int, sensor: int) -> int:
        self._check("temperature")
        return 61

    def nvmlDeviceGetPowerUsage(self, handle: int) -> int:
        self._check("power")
        return 45_500
