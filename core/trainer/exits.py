"""The end of a script as a typed ``Exit``: with the script's own traceback and line, not Tandem's."""

from __future__ import annotations

import re
import traceback
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from urllib.error import URLError

import tensorflow as tf
from msgspec import structs
from tensorflow.python.autograph.impl.api import StagingError

from core.exchange import problems as exchange
from core.trainer.walls import problem_at_wall
from core.vocabulary.errors import LEFT_RUN, Problem, TandemError
from core.vocabulary.phases import Exit, ExitReason
from core.vocabulary.trainer_messages import Enclosure

_PEER_GONE = re.compile(
    r"Collective ops is aborted|Connection reset by peer|Socket closed|failed to connect to all addresses"
    r"|has gone|heartbeat|coordination service|CoordinationService",
    re.IGNORECASE,
)
_DISK = re.compile(r"No space left on device|Disk quota exceeded|Read-only file system", re.IGNORECASE)
_FULL = re.compile(r"No space left on device|Disk quota exceeded", re.IGNORECASE)
_PORT_TAKEN = re.compile(r"Could not start gRPC server|address already in use", re.IGNORECASE)

_NO_DOWNLOAD = re.compile(r"URL fetch failure|Name or service not known|Temporary failure in name resolution")
_KERAS_2 = re.compile(r"'tf_keras|Keras cannot be imported")
"""The second, from TensorFlow: TF_USE_LEGACY_KERAS is set, and tf_keras is not installed."""

_SCRIPT_FIX = "Correct the script and train again."
_DISK_FIX = "Free some space, or make the script's output folder writable; then train again."


def of_script(
    error: BaseException,
    folder: Path,
    *,
    cluster: bool,
    walls: Enclosure | None = None,
    leaves: bool = False,
) -> Exit:
    """How ``error`` ended a run.

    ``cluster``: TensorFlow's own cluster was used, which raises other members' errors, too. ``leaves``: the
    others can continue without this member if its laptop is at fault rather than the script.
    """
    detail = own_traceback(error, folder)
    chain = _chain(error)
    if isinstance(error, SystemExit):
        return _of_system_exit(error, folder, detail)
    if any(_is_memory(each) for each in chain):
        return Exit(
            reason="out-of-memory",
            problem=Problem(
                code="out-of-memory",
                what=f"The training ran out of memory{_at(error, folder)}.",
                fix="Use a smaller batch or model, close other programs, or give the laptop a smaller share.",
                detail=detail,
            ),
        )
    if leaves and any(_is_disk(each) and _FULL.search(str(each)) for each in chain):
        return Exit(
            reason="killed",
            problem=Problem(
                code=exchange.DISK_FULL,
                what=f"The disk is full{_at(error, folder)}.",
                fix=_DISK_FIX,
                detail=detail,
            ),
        )
    if cluster and any(_is_lost_peer(each) for each in chain):
        return Exit(
            reason="lost-peer",
            problem=Problem(
                code="lost-peer",
                what="Another member left the run in the middle of the training.",
                fix="See the log of the laptop that left first, then press Train again.",
                detail=detail,
            ),
        )
    if walls is not None and (met := problem_at_wall(error, walls, _at(error, folder))) is not None:
        return Exit(reason="script-error", problem=structs.replace(met, detail=detail))
    for each in chain:
        if isinstance(each, TandemError):
            what = f"{each.what.rstrip('.')}{_at(error, folder)}."
            return Exit(
                reason="script-error",
                problem=Problem(code=each.code, what=what, fix=each.fix, detail=detail),
            )
    return Exit(
        reason="script-error",
        problem=Problem(
            code="script-error",
            what=f"{_short(error)}{_at(error, folder)}.",
            fix=_fix(error, chain),
            detail=detail,
        ),
    )


def of_meeting(error: BaseException) -> Exit:
    """The exit for a cluster that could not be set up, by TensorFlow or without it."""
    if isinstance(error, TandemError):
        return Exit(reason="never-met", shared=False, problem=error.problem)
    taken = _PORT_TAKEN.search(str(error)) is not None
    return Exit(
        reason="never-met",
        shared=False,
        problem=Problem(
            code="port-taken" if taken else "never-met",
            what="Another program uses the port that this trainer was given."
            if taken
            else "TensorFlow could not bring the members together.",
            fix="Train again; Tandem then chooses other ports."
            if taken
            else "See the other laptops' logs of this run, then train again.",
            detail="".join(traceback.format_exception_only(error)),
        ),
    )


def of_leaving() -> Exit:
    """The exit for a member whose laptop leaves the run; the others continue."""
    return Exit(reason="killed", problem=Problem(code=LEFT_RUN, what="It left the run."))


def of_exchange(failure: TandemError) -> Exit:
    """The exit for a failed exchange of members that meet without TensorFlow: the failure has the reason."""
    reasons: dict[str, ExitReason] = {
        exchange.MISMATCH: "script-error",
        exchange.ENDED: "script-error",
        exchange.BROKEN: "killed",
    }
    return Exit(reason=reasons.get(failure.code, "lost-peer"), problem=failure.problem)


def of_bug(error: BaseException) -> Exit:
    """The exit for a failure of Tandem itself, or a Keras release that it does not support."""
    problem = Problem(
        code="trainer-broke",
        what=f"Tandem's trainer failed, not the script: {_short(error)}.",
        fix="Run `tandem doctor` to check this installation.",
        detail="".join(traceback.format_exception(error)),
    )
    known = error.problem if isinstance(error, TandemError) else problem
    return Exit(reason="killed", shared=False, problem=known)


def own_traceback(error: BaseException, folder: Path) -> str:
    """The traceback as Python prints it, without Tandem's frames; project paths are relative."""
    printed = traceback.TracebackException.from_exception(error, compact=True)
    _drop_ours(printed, set())
    return "".join(printed.format()).replace(f'File "{folder}/', 'File "')


def _drop_ours(printed: traceback.TracebackException, seen: set[int]) -> None:
    if id(printed) in seen:
        return
    seen.add(id(printed))
    kept = [frame for frame in printed.stack or () if not _is_ours(frame.filename)]
    # None: an empty list would still print "Traceback", as Python does not for the script's syntax errors.
    printed.stack = traceback.StackSummary.from_list(kept) if kept else None  # type: ignore[assignment]
    for other in (printed.__cause__, printed.__context__, *(getattr(printed, "exceptions", None) or ())):
        if other is not None:
            _drop_ours(other, seen)


# Not `__file__`: in a frozen program the code's file name differs from it, and is relative.
_TRAINER = str(Path(own_traceback.__code__.co_filename).parent)


def _is_ours(filename: str) -> bool:
    return filename.startswith((_TRAINER, "<frozen runpy>", "<frozen importlib"))


def place(error: BaseException, folder: Path) -> tuple[str, int] | None:
    """File (relative to the project's folder) and line of the script's innermost frame."""
    if isinstance(error, SyntaxError) and error.filename and error.lineno:
        return _relative(error.filename, folder), error.lineno
    return _innermost(error.__traceback__, folder)


def _innermost(trace: TracebackType | None, folder: Path) -> tuple[str, int] | None:
    found = None
    while trace is not None:
        filename = trace.tb_frame.f_code.co_filename
        if Path(filename).is_relative_to(folder):
            found = _relative(filename, folder), trace.tb_lineno
        trace = trace.tb_next
    return found


def _relative(filename: str, folder: Path) -> str:
    path = Path(filename)
    return str(path.relative_to(folder)) if path.is_relative_to(folder) else filename


def _at(error: BaseException, folder: Path) -> str:
    where = place(error, folder)
    return "" if where is None else f" ({where[0]}, line {where[1]})"


def _short(error: BaseException) -> str:
    """Type and first line. TensorFlow's messages go on for pages; the rest is in the detail."""
    message = error.msg if isinstance(error, SyntaxError) else str(error)
    first = next((line.strip() for line in message.splitlines() if line.strip()), "")
    if len(first) > 300:
        first = first[:300] + " …"
    return f"{type(error).__name__}: {first.rstrip('.')}" if first else type(error).__name__


def _of_system_exit(error: SystemExit, folder: Path, detail: str) -> Exit:
    if error.code is None or error.code == 0:
        return Exit(reason="finished")
    said = f"exit code {error.code}" if isinstance(error.code, int) else f"the text {str(error.code)!r:.300}"
    return Exit(
        reason="script-error",
        problem=Problem(
            code="script-left",
            what=f"The script exited with {said}{_at(error, folder)}.",
            fix="See the log for what it wrote before that.",
            detail=detail,
        ),
    )


def _fix(error: BaseException, chain: Sequence[BaseException]) -> str:
    """Advice about an error that the script raised."""
    if any(_is_disk(each) for each in chain):
        return _DISK_FIX
    if any(isinstance(each, URLError) or _NO_DOWNLOAD.search(str(each)) for each in chain):
        return (
            "Connect that laptop to the internet, or copy the file to it (Keras keeps its datasets in "
            "~/.keras/datasets); then train again."
        )
    if isinstance(error, EOFError):
        return "Nobody can type during a run: have the script read the value from an argument instead."
    if isinstance(error, ImportError) and _KERAS_2.search(str(error)):
        return "Use Keras 3 (`import keras`), and set TF_USE_LEGACY_KERAS nowhere; then train again."
    if isinstance(error, ImportError):
        return "Install the missing package on that laptop, for Tandem's Python; then train again."
    return _SCRIPT_FIX


def _chain(error: BaseException) -> list[BaseException]:
    """The error and the errors it was raised from: a library may wrap the real one.

    AutoGraph does so while it traces a function of the script, and hides the cause.
    """
    chain: list[BaseException] = []
    each: BaseException | None = error
    while each is not None and not any(each is other for other in chain):
        chain.append(each)
        each = each.__context__ if isinstance(each, StagingError) else each.__cause__
    return chain


def _is_disk(error: BaseException) -> bool:
    return isinstance(error, OSError | tf.errors.OpError) and _DISK.search(str(error)) is not None


def _is_memory(error: BaseException) -> bool:
    if isinstance(error, tf.errors.ResourceExhaustedError):
        return "received message larger than max" not in str(error).lower() and not _is_disk(error)
    return isinstance(error, MemoryError)


def _is_lost_peer(error: BaseException) -> bool:
    if isinstance(error, tf.errors.UnavailableError | tf.errors.AbortedError):
        return True
    if isinstance(error, ConnectionResetError | BrokenPipeError):
        return False  # The script's own connections.
    return isinstance(error, tf.errors.OpError) and _PEER_GONE.search(str(error)) is not None
