"""Walls around a trainer: raises them before anything else, and explains errors that they cause."""

from __future__ import annotations

import errno
import functools
import os
import re
import secrets
import select
import shlex
import shutil
import signal
import socket
import stat
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from core.trainer.apart import apart
from core.vocabulary.access import is_within
from core.vocabulary.errors import Problem, TandemError
from core.vocabulary.trainer_messages import Enclosure
from core.vocabulary.wire import from_json, to_json
from core.walls import enclosure, levels, places

PROXY_S = 30.0
_READ = 65536
_PATH_IN_MESSAGE = {
    "PermissionDeniedError": re.compile(r"(/[^;\n]+); (?:Permission denied|Operation not permitted)"),
    "FileNotFoundError": re.compile(r"^(/[^\n]+) not found\.$"),
}
"""Errors of TensorFlow and NumPy that name the path only in their message."""


def read_walls(text: str) -> Enclosure:
    """Parses walls from a command line."""
    return from_json(text, Enclosure)


def raise_walls(walls: Enclosure, watcher: socket.socket | None = None) -> None:
    """Raises the walls; call it before any thread is started. Raises ``TandemError`` if they do not hold.

    ``watcher``: what ``begin_watcher`` returned, if it was called before.
    """
    try:
        _end_with_node(watcher or begin_watcher())
        enclosure.enclose(walls, *_begin_proxy(walls))
        if levels.found().walls == "default":
            os.chmod = _chmod(os.chmod)
    except (OSError, ValueError, enclosure.TooLate) as error:
        raise TandemError(
            code="walls-not-raised",
            what=f"The walls around the script could not be raised ({error}), so it was not run.",
            fix="Train again. `tandem doctor` shows how well this system can contain scripts.",
        ) from error


def begin_watcher() -> socket.socket | None:
    """Starts the process that ends a walled trainer with its node. None if this system has no walls.

    It does nothing until ``raise_walls`` starts it, and ends when the returned socket is closed. Forking is
    several times as fast before TensorFlow is loaded.
    """
    if sys.platform != "linux" or levels.found().walls == "none":
        return None
    node, trainer = os.pidfd_open(os.getppid()), os.pidfd_open(os.getpid())
    leads = os.getpgrp() == os.getpid()
    here, there = socket.socketpair()

    def watch() -> None:
        if not there.recv(1):
            return
        there.close()
        gone, _, _ = select.select([node, trainer], [], [])
        if node in gone:
            signal.pidfd_send_signal(trainer, signal.SIGKILL)
            if leads:
                os.killpg(os.getpgrp(), signal.SIGKILL)

    apart(watch, here)
    there.close()
    os.close(node)
    os.close(trainer)
    return here


def _end_with_node(watcher: socket.socket | None) -> None:
    """Security invariant: a script that cuts its leash still ends when its node is killed.

    The watcher, a process outside the walls, kills it. Since Linux 6.12 the script cannot signal the watcher.
    """
    if watcher is not None:
        with watcher:
            watcher.sendall(b"1")


def _chmod(really: Callable[..., None]) -> Callable[..., None]:
    """``os.chmod`` within walls, where modes cannot change: recreates a file that is to become executable."""

    @functools.wraps(really)
    def chmod(path: Any, mode: int, *rest: Any, **options: Any) -> None:
        really(path, mode, *rest, **options)
        if rest or options.get("dir_fd") is not None or isinstance(path, int):
            return
        file = Path(os.fsdecode(path))
        found = file.lstat().st_mode
        if stat.S_ISREG(found) and mode & 0o111 & ~found:
            part = file.with_name(f"{file.name[:200]}.{secrets.token_hex(4)}")
            made = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode & 0o777)
            with os.fdopen(made, "wb") as new, file.open("rb") as old:
                shutil.copyfileobj(old, new)
            part.replace(file)

    return chmod


def _begin_proxy(walls: Enclosure) -> list[int]:
    """Starts a proxy outside the walls that ends with this process, if one is needed. Returns its port.

    Within walls no name can be resolved, as UDP is refused on every level.
    """
    if walls.calls is None or not walls.downloads or levels.found().walls == "none":
        return []
    with socket.create_server(("127.0.0.1", 0)) as listener:
        here, there = socket.socketpair()
        apart(lambda: _serve(listener, there), here)
        there.close()
        _LASTING.append(here)
        here.settimeout(PROXY_S)
        os.environ.update(from_json(here.recv(_READ), dict[str, str]))
        return [listener.getsockname()[1]]


def _serve(listener: socket.socket, over: socket.socket) -> None:
    # Imported only here: its dependencies start threads.
    from core.net.tls_stream import Sockets
    from core.trainer.sealed.proxy import Proxy

    proxy = Proxy(listener, Sockets(), token=secrets.token_urlsafe())
    proxy.start()
    over.sendall(to_json(proxy.environment))
    over.recv(1)


_LASTING: list[socket.socket] = []
"""Sockets kept open until this process ends."""


def problem_at_wall(error: BaseException, walls: Enclosure, where: str) -> Problem | None:
    """The problem if a wall ended the script. ``where``: its line, in brackets, or nothing.

    None if this system has no walls, or would have refused the access without them.
    """
    if levels.found().walls == "none":
        return None
    for each in _chain(error):
        if path := _walled_path(each, walls):
            home = f"{walls.user.rstrip('/')}/"
            shown = f"~/{path.removeprefix(home)}" if path.startswith(home) else path
            return Problem(
                code="walls",
                what=f"The script may not open {shown} on this laptop{where}.",
                fix="Scripts from another laptop, and sealed ones, can use only the project's files and "
                "temporary ones. Put what it needs into the project's folder, and write beside the script."
                + _how_to_ask(shown),
            )
        if type(each) is PermissionError and each.errno == errno.EACCES and each.filename is None:
            return Problem(
                code="walls",
                what=f"The script may not make this connection{_destination(each)} from here{where}.",
                fix="Scripts from another laptop, and sealed ones, can reach only the run's members, and, "
                "if downloads are allowed, the web through Tandem's proxy. Unix sockets and UDP are refused.",
            )
    return None


def _how_to_ask(path: str) -> str:
    """Advice to ask for the path; empty if nobody can allow it."""
    hidden = any(part.startswith(".") for part in Path(path.removeprefix("~/")).parts)
    if hidden or is_within(path, ("/proc", "/sys", "/dev", "/run")):
        return ""
    return f" Or ask this laptop's user: --open NAME={shlex.quote(path)} (PATH:write to change it)."


def _walled_path(error: BaseException, walls: Enclosure) -> str:
    """The path that only the walls refuse, as the laptop's user would name it; ``""`` if there is none."""
    path = _path(error)
    if not path:
        return ""
    own, user = os.path.realpath(walls.home), os.path.realpath(walls.user)
    real = os.path.realpath(path)
    if isinstance(error, FileNotFoundError):
        # The script looked below its own home for something in its user's.
        below = os.path.relpath(real, own)
        meant = str(Path(user, below))
        return meant if below[0] != "." and os.path.lexists(meant) else ""
    written = (*walls.folders, *(each.path for each in walls.opened if each.write), *places.devices())
    if is_within(real, map(os.path.realpath, written)):
        return ""
    there = real if os.path.lexists(real) else str(Path(real).parent)
    # Landlock refuses to open the file, but os.access still answers by its mode.
    return (
        path if os.access(there, os.W_OK) or (_is_hidden(real, walls) and os.access(there, os.R_OK)) else ""
    )


def _is_hidden(path: str, walls: Enclosure) -> bool:
    """Whether the path cannot even be read within walls."""
    read = (*places.readable(walls.private), *walls.reads, *(each.path for each in walls.opened))
    return not is_within(path, map(os.path.realpath, read))


def _path(error: BaseException) -> str:
    """The absolute path that could not be opened."""
    if isinstance(error, PermissionError | FileNotFoundError) and isinstance(error.filename, str | bytes):
        return str(Path.cwd() / os.fsdecode(error.filename))
    pattern = _PATH_IN_MESSAGE.get(type(error).__name__)
    found = pattern.search(str(error)) if pattern is not None else None
    return found[1] if found else ""


def _destination(error: BaseException) -> str:
    """`` to HOST:PORT``, if a frame of Python's own modules has it."""
    trace, found = error.__traceback__, ""
    while trace is not None:
        called = trace.tb_frame.f_locals.get("address")
        if trace.tb_frame.f_code.co_name == "create_connection" and isinstance(called, tuple):
            found = f" to {':'.join(map(str, called[:2]))}"
        trace = trace.tb_next
    return found


def _chain(error: BaseException) -> Iterator[BaseException]:
    seen: list[BaseException] = []
    each: object = error
    while isinstance(each, BaseException) and not any(each is other for other in seen):
        seen.append(each)
        yield each
        # urllib wraps the reason.
        each = getattr(each, "reason", None) or each.__cause__ or each.__context__
