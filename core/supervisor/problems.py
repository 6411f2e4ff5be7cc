"""Why a trainer failed, from its exit status, a limit or its peers' ports: typed failures. No I/O."""

from __future__ import annotations

import re
import signal

from msgspec.structs import replace

from core.supervisor.state import Answer
from core.vocabulary import units
from core.vocabulary.errors import Problem
from core.vocabulary.paths import shown
from core.vocabulary.phases import ARGUMENTS_REFUSED, Exit

_LOST = re.compile(
    r"UNAVAILABLE|Connection reset|Socket closed|heartbeat|Coordination|coordination service|"
    r"failed to connect to all addresses|Collective ops is aborted",
)


_ARGUMENTS = re.compile(r"(?:\S+: error|Error|FATAL Flags parsing error): .+")
"""The last line that argparse, click and absl print when they refuse a script's arguments."""
_TENSORFLOWS = re.compile(r"[IWE]\d{4} \d\d:\d\d:\d+\.\d+ +\d+ .*|WARNING: All log messages before absl.*")
"""Lines of TensorFlow's own log, such as one about a missing CUDA driver: no script exits because of them."""
LEFT = "script-left"
_LAST_LINES = 8


def with_tail(exit: Exit, tail: str) -> Exit:
    """``tail``: the last lines of the trainer's stderr, which explain why a script exited."""
    problem = exit.problem
    if problem is None:
        return exit
    tail = "\n".join(line for line in tail.splitlines() if not _TENSORFLOWS.fullmatch(line))
    last = [line.strip() for line in tail.splitlines() if line.strip()][-_LAST_LINES:]
    refused = [line for line in last if _ARGUMENTS.fullmatch(line)]
    if problem.code == LEFT and refused:
        problem = Problem(
            code=ARGUMENTS_REFUSED, what=shown(refused[-1], 300), fix="Edit the arguments and train again."
        )
    elif problem.code == LEFT and last:
        problem = replace(problem, fix=f"Its last output: {shown(last[-1], 300)}")
    return replace(exit, problem=replace(problem, detail=problem.detail or tail))


def signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def died(status: int, *, booted: bool, cluster: bool, memory: bool, tail: str) -> Exit:
    """A process that nobody ended. ``status`` as Popen gives it; ``tail`` the last lines of its stderr.

    ``memory``: the kernel killed a process for lack of memory while this one ran.
    """
    if status < 0 and signal_name(-status) == "SIGKILL":
        return out_of_memory(tail) if memory else _killed_from_outside(tail)
    if not booted:
        return Exit(
            reason="killed",
            problem=Problem(
                code="tensorflow-broken",
                what=f"The trainer ended while TensorFlow was loading ({_status(status)}).",
                fix="`tandem doctor --deep` loads TensorFlow and says what is wrong with it.",
                detail=tail,
            ),
        )
    if status < 0 and cluster and _LOST.search(tail):
        return Exit(
            reason="lost-peer",
            problem=Problem(
                code="lost-peer",
                what="Another member of the run was lost, and TensorFlow ended the trainer here.",
                fix="The log of the laptop that was lost first says why. Press Train to start again.",
                detail=tail,
            ),
        )
    if status < 0:
        name = signal_name(-status)
        return Exit(
            reason="killed",
            problem=Problem(
                code="crashed",
                what=f"The trainer was ended by {name}: {_SIGNALS.get(name, 'sent to it')}.",
                fix="Run it again; if it fails again, the end of the log shows what it did last.",
                detail=tail,
            ),
        )
    return Exit(
        reason="killed",  # it ended without a goodbye, and the other members must not wait for it
        problem=Problem(
            code=LEFT,
            what=f"The script ended its own process with exit code {status}, without an error.",
            fix="Let the script run to its end, or raise an error instead of os._exit.",
            detail=tail,
        ),
    )


_SIGNALS = {
    "SIGSEGV": "a crash in native code",
    "SIGABRT": "a native library gave up",
    "SIGBUS": "a crash in native code, or a full disk",
    "SIGILL": "this processor lacks an instruction that the program uses",
    "SIGFPE": "a crash in native arithmetic",
}


def _status(status: int) -> str:
    return signal_name(-status) if status < 0 else f"exit code {status}"


def out_of_memory(tail: str) -> Exit:
    return Exit(
        reason="out-of-memory",
        problem=Problem(
            code="out-of-memory",
            what="The laptop ran out of memory, and the system ended the trainer.",
            fix="Close other programs, use a smaller batch or model, or give this laptop a smaller share.",
            detail=tail,
        ),
    )


def _killed_from_outside(tail: str) -> Exit:
    return Exit(
        reason="killed",
        problem=Problem(
            code="killed",
            what="The trainer was killed from outside (SIGKILL), usually because memory ran out.",
            fix="Check whether memory was full; if so, use a smaller batch or close other programs.",
            detail=tail,
        ),
    )


def slow_boot(limit_s: float) -> Exit:
    return Exit(
        reason="killed",
        problem=Problem(
            code="tensorflow-slow",
            what=f"TensorFlow did not load within {units.duration(limit_s)}.",
            fix="The laptop may be very busy. Close other programs and try again; Tandem will wait longer. "
            "`tandem doctor --deep` tests whether TensorFlow loads.",
        ),
    )


def forced(words: str, tail: str = "") -> Exit:
    """Ended by Tandem after Stop. ``words``: why it took force."""
    return Exit(
        reason="killed",
        problem=Problem(
            code="stop-forced",
            what=words,
            fix="Files that the script was writing may be incomplete.",
            detail=tail,
        ),
    )


def never_met(peers: dict[str, str], answers: dict[str, Answer], waited_s: float) -> Problem:
    """A sentence with the missing members, their addresses, the time waited, and what to do."""
    missing = {task: answer for task, answer in answers.items() if answer != "answers"}
    waited = f"within {units.duration(waited_s)}"
    if not missing:
        return Problem(
            code="never-met",
            what=f"The trainers did not meet {waited}, though every peer's port answers: "
            f"{_list(peers, peers)}.",
            fix="Train again. If it happens again, restart Tandem on the laptops named here.",
        )
    what = "; ".join(f"{task} ({peers[task]}) {_SAYING[answer]}" for task, answer in missing.items())
    reasons = [mend for answer, mend in _MENDS.items() if answer in missing.values()]
    return Problem(
        code="never-met", what=f"The trainers did not meet {waited}: {what}.", fix=" ".join(reasons)
    )


_SAYING: dict[Answer, str] = {
    "refused": "is there, but nothing listens on that port",
    "silent": "did not answer on that port",
    "unreachable": "cannot be reached from here",
}
_MENDS: dict[Answer, str] = {
    "refused": "That laptop's log of the run says more: its trainer did not start, or a firewall rejects it.",
    "silent": "Allow TCP ports 20000–32000 between the laptops in that laptop's firewall.",
    "unreachable": "Put both laptops on the same network.",
}


def _list(peers: dict[str, str], tasks: dict[str, str]) -> str:
    return ", ".join(f"{task} ({peers[task]})" for task in tasks)


def supervision_broke(error: Exception) -> Problem:
    return Problem(
        code="supervision-broke",
        what="Tandem lost control of its trainer and ended it.",
        fix="Train again; the node's log has the details.",
        detail=repr(error),
    )
