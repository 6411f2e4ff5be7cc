"""Asks another laptop to install packages that a script needs there, and installs those that this user
allows. On the core loop; the installer is a process of its own.

Security invariant: a package can do anything its user can, and another laptop chose it. So nothing is
installed before this laptop's user has seen the packages and said yes, even if the other laptop's scripts run
without a question. Packages are names and versions from this laptop's package index, never addresses, files
or options.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import re
import shlex
from collections.abc import Callable

from core.run import install_problems as problems
from core.run.context import RunContext
from core.script import packages as here
from core.vocabulary.commands import AskToInstall, Install
from core.vocabulary.errors import TandemError
from core.vocabulary.ids import DeviceId, short
from core.vocabulary.peer_messages import InstallAsked, InstallTold
from core.vocabulary.text import plain_lines

LIMIT_S = 3600.0
MOST_PACKAGES = 30
_LONGEST = 100
_TOLD_LINES = 8
_PACKAGE = re.compile(
    r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?(?:==[A-Za-z0-9](?:[A-Za-z0-9.+!_-]*[A-Za-z0-9])?)?"
)
"""A name, or a name and one version (PEP 508)."""
_QUIET = {
    "PIP_NO_INPUT": "1",
    "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    "PIP_PROGRESS_BAR": "off",
    "NO_COLOR": "1",
}
_log = logging.getLogger(__name__)


class Installs:
    """One per node. ``installer``: for tests; as ``core.script.packages.installer``."""

    def __init__(
        self,
        context: RunContext,
        *,
        installer: Callable[[], str] = here.installer,
        limit_s: float = LIMIT_S,
    ) -> None:
        self.lacking: dict[DeviceId, tuple[str, ...]] = {}
        """Packages that each laptop lacked when its modules were last checked."""
        self._context = context
        self._installer = installer
        self._limit_s = limit_s
        self._asked: dict[DeviceId, tuple[str, ...]] = {}
        """Packages that each laptop was asked to install."""
        self._asking: dict[DeviceId, tuple[str, ...]] = {}
        """Packages that each laptop asks for, not yet answered."""
        self._installing = asyncio.Lock()

    def do(self, command: AskToInstall | Install) -> None:
        """Raises ``TandemError``."""
        if isinstance(command, Install):
            self._answer(command)
        elif command.device == self._context.me:
            self._install_own(command.device)
        else:
            self._ask(command.device)

    def _install_own(self, me: DeviceId) -> None:
        """The user saw in the plan what is missing here, and pressed the button."""
        if not (wanted := self.lacking.pop(me, ())):
            raise TandemError.of(problems.nothing_lacks("this laptop"))
        self._context.background.start("install packages", self._install(None, wanted))

    def _ask(self, device: DeviceId) -> None:
        wanted, name = self.lacking.get(device, ()), self._context.name_of(device)
        if not wanted:
            raise TandemError.of(problems.nothing_lacks(name))
        if not self._context.links.send(device, InstallAsked(packages=wanted)):
            raise TandemError.of(problems.not_connected(name))
        self._asked[device] = wanted
        self._context.notice(problems.asked(name, wanted))

    def on_asked(self, device: DeviceId, asked: InstallAsked) -> None:
        sound = all(len(each) <= _LONGEST and _PACKAGE.fullmatch(each) for each in asked.packages)
        if not sound or not 0 < len(asked.packages) <= MOST_PACKAGES:
            _log.warning("%s asked to install something that is not a package", short(device))
            return
        if not (installer := self._installer()):
            return  # its user was told that nothing can be installed here
        self._asking[device] = asked.packages
        self._context.notice(
            problems.wanted_here(self._context.name_of(device), device, asked.packages, installer)
        )

    def _answer(self, command: Install) -> None:
        device, wanted = command.device, command.packages
        if self._asking.get(device) != wanted:
            raise TandemError.of(problems.not_asked(self._context.name_of(device)))
        del self._asking[device]
        if command.allowed:
            self._context.background.start("install packages", self._install(device, wanted))
        else:
            self._context.links.send(device, InstallTold(packages=wanted, problem=problems.declined(wanted)))

    async def _install(self, device: DeviceId | None, wanted: tuple[str, ...]) -> None:
        """``device``: who asked for it; None: this laptop's user."""
        async with self._installing:
            self._context.notice(problems.under_way(wanted))
            command = (*shlex.split(self._installer(), posix=os.name != "nt"), *wanted)
            said = await _output_of_failure(command, self._limit_s)
        problem = None if said is None else problems.failed(wanted, said)
        self._context.notice(problems.done_here(wanted) if problem is None else problem)
        if device is not None:
            self._context.links.send(device, InstallTold(packages=wanted, problem=problem))

    def on_told(self, device: DeviceId, told: InstallTold) -> None:
        if self._asked.pop(device, None) != told.packages:
            _log.warning("%s reported an installation that nobody asked for", short(device))
            return
        self._context.notice(problems.done_there(self._context.name_of(device), told.packages, told.problem))


async def _output_of_failure(command: tuple[str, ...], limit_s: float) -> str | None:
    """The last lines of a command that failed; None: it succeeded."""
    try:
        process = await asyncio.create_subprocess_exec(
            *command,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            env={**os.environ, **_QUIET},
        )
    except OSError as error:
        return f"{command[0]}: {error.strerror or error}"
    try:
        async with asyncio.timeout(limit_s):
            told, _ = await process.communicate()
    except TimeoutError:
        return f"It took longer than {limit_s / 60:.0f} minutes."
    finally:
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
    if process.returncode == 0:
        return None
    return (
        "\n".join(plain_lines(told.decode("utf-8", "replace"))[-_TOLD_LINES:])
        or f"exit code {process.returncode}"
    )
