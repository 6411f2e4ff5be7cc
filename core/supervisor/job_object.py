"""Ends a trainer together with everything that its script starts, at the latest with the node. Windows;
untested.

https://learn.microsoft.com/windows/win32/procthread/job-objects: children of a process in a job join the job;
JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE ends them all when the last handle to the job is closed, which the system
does for a node however it ended.
"""

from __future__ import annotations

import sys

if sys.platform == "win32":
    import ctypes
    from ctypes import wintypes

    _EXTENDED_LIMITS = 9  # JobObjectExtendedLimitInformation
    _KILL_ON_CLOSE = 0x2000

    class _Basic(ctypes.Structure):
        _fields_ = (
            ("PerProcessUserTimeLimit", wintypes.LARGE_INTEGER),
            ("PerJobUserTimeLimit", wintypes.LARGE_INTEGER),
            ("LimitFlags", wintypes.DWORD),
            ("MinimumWorkingSetSize", ctypes.c_size_t),
            ("MaximumWorkingSetSize", ctypes.c_size_t),
            ("ActiveProcessLimit", wintypes.DWORD),
            ("Affinity", ctypes.c_size_t),
            ("PriorityClass", wintypes.DWORD),
            ("SchedulingClass", wintypes.DWORD),
        )

    class _Extended(ctypes.Structure):
        _fields_ = (
            ("BasicLimitInformation", _Basic),
            ("IoInfo", ctypes.c_ulonglong * 6),
            ("ProcessMemoryLimit", ctypes.c_size_t),
            ("JobMemoryLimit", ctypes.c_size_t),
            ("PeakProcessMemoryUsed", ctypes.c_size_t),
            ("PeakJobMemoryUsed", ctypes.c_size_t),
        )

    class JobObject:
        """Holds one process from ``__init__`` to ``close``, and everything it starts. Raises ``OSError``."""

        def __init__(self, pid: int) -> None:
            self._kernel = ctypes.WinDLL("kernel32", use_last_error=True)
            for name in ("CreateJobObjectW", "OpenProcess"):
                getattr(self._kernel, name).restype = wintypes.HANDLE
            self._handle = wintypes.HANDLE(self._checked(self._kernel.CreateJobObjectW(None, None)))
            limits = _Extended()
            limits.BasicLimitInformation.LimitFlags = _KILL_ON_CLOSE
            size = ctypes.sizeof(limits)
            process = wintypes.HANDLE()
            try:
                set_limits = self._kernel.SetInformationJobObject
                self._checked(set_limits(self._handle, _EXTENDED_LIMITS, ctypes.byref(limits), size))
                # PROCESS_SET_QUOTA | PROCESS_TERMINATE
                process = wintypes.HANDLE(self._checked(self._kernel.OpenProcess(0x0101, False, pid)))
                self._checked(self._kernel.AssignProcessToJobObject(self._handle, process))
            except OSError:
                self.close()
                raise
            finally:
                self._kernel.CloseHandle(process)

        def end(self) -> None:
            """Kill everything in it at once."""
            self._kernel.TerminateJobObject(self._handle, 1)

        def close(self) -> None:
            self._kernel.CloseHandle(self._handle)

        def _checked(self, result: int | None) -> int:
            if not result:
                raise ctypes.WinError(ctypes.get_last_error())
            return result

else:

    class JobObject:
        """A placeholder: here a trainer leads a process group instead."""

        def end(self) -> None: ...

        def close(self) -> None: ...
