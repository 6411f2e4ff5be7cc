"""Checks before the start whether every laptop of a run has the modules that its script imports. On the core
loop; disks are searched in a thread.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from msgspec import structs

from core.run.context import RunContext
from core.run.installs import Installs
from core.script import packages
from core.script.needs import Needs
from core.script.syntax import Usage
from core.vocabulary.errors import MODULES_MISSING, Problem, TandemError
from core.vocabulary.ids import DeviceId, short
from core.vocabulary.paths import shown
from core.vocabulary.peer_messages import MODULES_ASKED, InstallAsked, InstallTold, ModulesAsked, ModulesTold
from core.vocabulary.text import listed, plain

_log = logging.getLogger(__name__)

_LONGEST = 100
HERE = "here"


@dataclass(frozen=True, slots=True)
class Lack:
    """Modules that one laptop lacks. ``where``: its name, or ``HERE``; ``installer``: as in
    ``ModulesTold``."""

    where: str
    modules: frozenset[str]
    installer: str
    device: DeviceId | None = None


class Modules:
    """One per node. ``foresee`` is called when another laptop prepares a run with this one."""

    def __init__(self, context: RunContext, foresee: Callable[[], None] = lambda: None) -> None:
        self._context = context
        self._foresee = foresee
        self.installs = Installs(context)
        self._numbers = itertools.count(1)
        self._answering: set[DeviceId] = set()

    async def check(
        self, needs: Needs, others: Mapping[DeviceId, str], *, here: bool = True
    ) -> tuple[Problem, ...]:
        """Warnings about modules that may be missing. Raises ``TandemError`` for those the script surely
        needs.

        ``others``: the names of the devices to ask. They are asked even about no modules, so that they
        foresee the run.
        ``here``: this laptop runs the script, too.
        """
        wanted = tuple(usage.what for usage in (*needs.surely, *needs.maybe))[:MODULES_ASKED]
        if not wanted:
            for device in others:
                self._context.links.send(device, ModulesAsked(question=next(self._numbers), modules=()))
            return ()
        own = [self._look_here(wanted)] if here else []
        found = await asyncio.gather(*own, *(self._ask(*other, wanted) for other in others.items()))
        # The others first: their missing modules cannot be seen from here.
        lacks = sorted((lack for lack in found if lack is not None), key=lambda lack: lack.where == HERE)
        self.installs.lacking.clear()
        if surely := _among(lacks, needs.surely):
            raise TandemError.of(await self._remember(needs.surely, surely, sure=True))
        if maybe := _among(lacks, needs.maybe):
            return (await self._remember(needs.maybe, maybe, sure=False),)
        return ()

    async def _remember(self, usages: Sequence[Usage], lacks: Sequence[Lack], *, sure: bool) -> Problem:
        """The sentence about what is missing, and where it could be installed."""
        for lack in lacks:
            found = await asyncio.to_thread(_packages, _ordered(usages, lack.modules))
            if lack.device is not None and lack.installer and found:
                self.installs.lacking[lack.device] = found
        told = await asyncio.to_thread(missing, usages, lacks, sure=sure)
        return structs.replace(told, installs=tuple(self.installs.lacking))

    async def _look_here(self, wanted: Sequence[str]) -> Lack:
        lacking = await asyncio.to_thread(packages.missing, wanted)
        return Lack(HERE, frozenset(lacking), packages.installer(), self._context.me)

    async def _ask(self, device: DeviceId, name: str, wanted: tuple[str, ...]) -> Lack | None:
        question = ModulesAsked(question=next(self._numbers), modules=wanted)
        told = await self._context.links.ask(device, question, self._context.limits.modules_s)
        if not isinstance(told, ModulesTold):
            _log.info("%s did not say which modules it has", short(device))
            return None
        return Lack(name, frozenset(told.missing), plain(told.installer, 200), device)

    def on_message(self, device: DeviceId, message: ModulesAsked | InstallAsked | InstallTold) -> None:
        match message:
            case ModulesAsked():
                self.on_asked(device, message)
            case InstallAsked():
                self.installs.on_asked(device, message)
            case InstallTold():
                self.installs.on_told(device, message)

    def on_asked(self, device: DeviceId, asked: ModulesAsked) -> None:
        """Answer a paired laptop politely but within limits: names only, few, one question at a time."""
        names_only = all(len(name) <= _LONGEST and name.isidentifier() for name in asked.modules)
        if len(asked.modules) > MODULES_ASKED or not names_only or device in self._answering:
            _log.warning("a question of %s about modules is not answered", short(device))
            return
        self._foresee()
        if not asked.modules:
            return
        self._answering.add(device)
        self._context.background.start("look for modules", self._answer(device, asked))

    async def _answer(self, device: DeviceId, asked: ModulesAsked) -> None:
        try:
            lack = await self._look_here(asked.modules)
        finally:
            self._answering.discard(device)
        told = ModulesTold(
            question=asked.question, missing=tuple(sorted(lack.modules)), installer=lack.installer
        )
        self._context.links.send(device, told)


def check_here(needs: Needs) -> None:
    """Check a single member's modules. Blocks. Raises ``TandemError`` for those the script surely needs."""
    lacking = packages.missing(usage.what for usage in needs.surely)
    if lacking:
        here = Lack(HERE, frozenset(lacking), packages.installer())
        raise TandemError.of(missing(needs.surely, (here,), sure=True))


def _among(lacks: Sequence[Lack], usages: Sequence[Usage]) -> tuple[Lack, ...]:
    names = {usage.what for usage in usages}
    some = (replace(lack, modules=lack.modules & names) for lack in lacks)
    return tuple(lack for lack in some if lack.modules)


def missing(
    usages: Sequence[Usage],
    lacks: Sequence[Lack],
    *,
    sure: bool,
    requirement: Callable[[str], str] = packages.requirement,
) -> Problem:
    """The sentence, and the command for each laptop. Blocks: searches the packages installed here."""
    places = dict[frozenset[str], list[str]]()
    for lack in lacks:
        places.setdefault(lack.modules, []).append(lack.where)
    said = [
        f"{listed(_ordered(usages, modules))} {'is' if len(modules) == 1 else 'are'} missing {_at(where)}"
        for modules, where in places.items()
    ]
    first = next(usage for usage in usages if any(usage.what in lack.modules for lack in lacks))
    line = f"the script imports {first.what} in {shown(first.path)}, line {first.line}"
    unsure = "" if sure else ", though perhaps not in every run"
    on = plain(lacks[0].where, 40) if len(lacks) == 1 and lacks[0].where != HERE else ""
    told = [_fix(lack, _ordered(usages, lack.modules), requirement) for lack in lacks]
    return Problem(
        code=MODULES_MISSING,
        what=f"{'; '.join(said)}: {line}{unsure}.",
        fix=" ".join(fix for fix, _ in told),
        command=told[0][1] if len(told) == 1 else "",
        command_on=on,
    )


def _packages(modules: Sequence[str]) -> tuple[str, ...]:
    """The packages that an index can have. Blocks."""
    return tuple(filter(None, map(packages.requirement, modules)))


def _at(where: Sequence[str]) -> str:
    if where == [HERE]:
        return HERE
    others = "on " + listed([plain(name, 40) for name in where if name != HERE])
    return f"{others} (and here)" if HERE in where else others


def _ordered(usages: Sequence[Usage], modules: frozenset[str]) -> list[str]:
    return [usage.what for usage in usages if usage.what in modules]


def _fix(lack: Lack, modules: Sequence[str], requirement: Callable[[str], str]) -> tuple[str, str]:
    """Sentences, and the command among them."""
    there = "Here" if lack.where == HERE else f"On {plain(lack.where, 40)}"
    named_so = {module: requirement(module) for module in modules}
    named = [package for package in named_so.values() if package]
    from_folders = [module for module, package in named_so.items() if not package]
    fixes, command = [], ""
    if named and lack.installer:
        them, command = "it" if len(named) == 1 else "them", f"{lack.installer} {' '.join(named)}"
        fixes.append(f"{there}, install {them} with `{command}`.")
    elif named:
        fixes.append(
            f"{there}, Tandem was installed as a program with its own Python, which cannot be extended: "
            f"install Tandem with pip or pipx instead, together with {listed(named)}."
        )
    if from_folders:
        fixes.append(
            f"{listed(from_folders)} is in a folder of this laptop: put it beside the script, so that it is "
            f"sent along, or install it on {plain(lack.where, 40)} as well."
        )
    return " ".join(fixes), command
