"""The life of one trainer process as a machine without I/O: reports, stops and the clock in, effects out.

booting → running ⇄ meeting → leaving → dead        (each with its limit)
and, beside it, the stop ladder: Stop order → SIGTERM → SIGKILL
"""

from __future__ import annotations

from core.supervisor import problems
from core.supervisor.state import Answer, Effect, Force, Limits, Phase, Rung
from core.vocabulary import trainer_messages, units
from core.vocabulary.phases import Exit


class Supervision:
    """One trainer. Every method takes the time as ``now_s``; ``deadline_s`` is when ``on_time`` is due."""

    def __init__(self, train: trainer_messages.Train, limits: Limits, now_s: float) -> None:
        self.train = train
        self.limits = limits
        self.booted = False
        self.too_slow = False
        """TensorFlow was not loaded within its limit."""
        self.deadline_s: float | None = now_s + limits.boot_s
        self._phase: Phase = "booting"
        self._meet_by_s = 0.0
        self._rung: Rung = "none"
        self._exit: Exit | None = None
        self._unmet: Exit | None = None

    def on_report(self, report: trainer_messages.Report, now_s: float) -> list[Effect]:
        match report:
            case trainer_messages.Booted():
                self.booted = True
                if self._rung != "none":
                    return []
                self._to("running", None)
                return ["train"]
            case trainer_messages.Connecting() if self._phase == "running":
                self._meet_by_s = now_s + self.train.meet_timeout_s
                if self.train.exchange is not None:  # such a trainer reports a better reason by then
                    self._meet_by_s += self.limits.own_verdict_s
                probe_s = min(self.limits.probe_s, self.train.meet_timeout_s / 2)
                if self._rung == "asked":  # Stop arrived just before; a waiting trainer reads no orders.
                    return self._kill(Exit(reason="stopped"))
                self._to("meeting", self._meet_by_s - probe_s)
            case trainer_messages.Met() if self._phase in ("meeting", "probing", "unmet"):
                self._to("running", None)
            case trainer_messages.Ended():
                if self._exit is None:
                    self._exit = report.exit
                if self._rung != "killed":
                    self._to("leaving", now_s + self.limits.leave_s)
        return []

    def on_stop(self, force: Force, now_s: float) -> list[Effect]:
        """Stop the trainer, for a user or a run that ended elsewhere. Repeating this is harmless."""
        if self._rung == "killed" or (self._phase == "leaving" and force == 0):
            return []
        if force == 2:
            return self._kill(problems.forced("The script was ended at once, as asked."))
        if self._phase in ("booting", "meeting", "probing", "unmet"):
            # No code of a managed script has run yet, and orders are not read there.
            return self._kill(Exit(reason="stopped"))
        if force == 1:
            return self._terminate(now_s)
        if self._rung == "none":
            self._rung = "asked"
            self.deadline_s = now_s + self.limits.grace_s
            return ["stop"]
        return []

    def on_time(self, now_s: float) -> list[Effect]:
        """Call when the deadline may have passed; harmless if it has not."""
        if self.deadline_s is None or now_s < self.deadline_s:
            return []
        self.deadline_s = None
        if self._phase == "leaving":
            return self._kill(self._exit)
        if self._rung == "asked":
            return self._terminate(now_s)
        if self._rung == "terminated":
            waited_s = self.limits.grace_s + self.limits.terminate_s
            return self._kill(
                problems.forced(f"The script did not end within {units.duration(waited_s)} after Stop.")
            )
        if self._phase == "booting":
            self.too_slow = True
            return self._kill(problems.slow_boot(self.limits.boot_s))
        if self._phase == "meeting":
            self._phase = "probing"
            return ["try-peers"]
        if self._phase == "unmet":
            return self._kill(self._unmet)
        return []

    def on_answers(self, answers: dict[str, Answer]) -> None:
        """The results of trying the peers' ports."""
        if self._phase == "probing":
            problem = problems.never_met(self.train.peers, answers, self.train.meet_timeout_s)
            self._unmet = Exit(reason="never-met", problem=problem, shared=False)
            self._to("unmet", self._meet_by_s)

    def on_dead(self, status: int, *, memory: bool, tail: str) -> Exit:
        """Returns the final verdict on an ended process."""
        if self._exit is not None:
            return problems.with_tail(self._exit, tail)
        if self._rung == "terminated" and status < 0:
            return problems.forced("The script did not end by itself after Stop, so it was ended.", tail)
        if self._rung == "asked":
            return Exit(reason="stopped")
        over_tensorflow = bool(self.train.tf_config) and self.train.exchange is None
        return problems.died(status, booted=self.booted, cluster=over_tensorflow, memory=memory, tail=tail)

    def _to(self, phase: Phase, deadline_s: float | None) -> None:
        self._phase = phase
        if phase == "leaving" or self._rung == "none":
            self.deadline_s = deadline_s

    def _terminate(self, now_s: float) -> list[Effect]:
        if self._rung == "terminated":
            return []
        self._rung = "terminated"
        self.deadline_s = now_s + self.limits.terminate_s
        return ["terminate"]

    def _kill(self, exit: Exit | None) -> list[Effect]:
        if self._exit is None:
            self._exit = exit
        self._rung = "killed"
        self.deadline_s = None
        return ["kill"]
