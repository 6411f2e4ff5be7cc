"""Three failed attempts in a row → no pairing for 60 s, then 120 s, 240 s … up to an hour. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace

FAILURES_ALLOWED = 3
FIRST_S = 60.0
LONGEST_S = 3600.0


@dataclass(frozen=True, slots=True)
class Pause:
    """How often it failed, and until when (clock of the machine, seconds) nothing is tried."""

    failures: int = 0
    pauses: int = 0
    until_s: float = 0.0
    last_failure_s: float = 0.0

    def left_s(self, now_s: float) -> float:
        return max(0.0, self.until_s - now_s)

    def after_failure(self, now_s: float) -> Pause:
        # A quiet hour after the last failure and its pause forgives.
        quiet_s = now_s - max(self.last_failure_s, self.until_s)
        before = self if quiet_s < LONGEST_S else Pause()
        counted = replace(before, failures=before.failures + 1, last_failure_s=now_s)
        if counted.failures < FAILURES_ALLOWED:
            return counted
        length_s = min(FIRST_S * 2.0**counted.pauses, LONGEST_S)
        return replace(counted, failures=0, pauses=min(counted.pauses + 1, 16), until_s=now_s + length_s)
