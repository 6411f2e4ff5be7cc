"""Packages that one laptop asks another to install: who decides, what is never installed. Real processes."""

from __future__ import annotations

import asyncio
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from core.run.installs import MOST_PACKAGES, Installs
from core.runtime.background import Background
from core.vocabulary.commands import AskToInstall, Install
from core.vocabulary.errors import INSTALL_ASKED, INSTALLED, Problem, TandemError
from core.vocabulary.ids import DeviceId, short
from core.vocabulary.peer_messages import InstallAsked, InstallTold, Message
from tests.core.cluster.laptops import ANNA, BEN

PACKAGES = ("rare-tables==1.0", "pandas")


class Side:
    """One laptop. Its installer is a program that writes its arguments to ``done``, or fails."""

    def __init__(self, folder: Path, body: str = "") -> None:
        self.sent: list[tuple[DeviceId, Message]] = []
        self.notices: list[Problem] = []
        self.linked = True
        self.told = asyncio.Event()
        self.ended = asyncio.Event()
        self.done = folder / "done"
        program = folder / "installer.py"
        program.write_text(
            body
            or f"import pathlib, sys\npathlib.Path({str(self.done)!r}).write_text(' '.join(sys.argv[1:]))\n"
        )
        self.background = Background(lambda name, error: pytest.fail(f"{name}: {error}"))
        self.context = SimpleNamespace(
            me=DeviceId(""), links=self, background=self.background, notice=self._notice, name_of=short
        )
        self.installs = Installs(
            cast(Any, self.context),
            installer=lambda: shlex.join([sys.executable, str(program), "install"]),
        )

    def _notice(self, problem: Problem) -> None:
        self.notices.append(problem)
        if not problem.what.startswith("Installing "):
            self.ended.set()

    def send(self, device: DeviceId, message: Message) -> bool:
        self.sent.append((device, message))
        self.told.set()
        return self.linked

    async def until_told(self) -> InstallTold:
        async with asyncio.timeout(60):
            await self.told.wait()
        message = self.sent[-1][1]
        assert isinstance(message, InstallTold)
        return message


@pytest.fixture
def ben(tmp_path: Path) -> Iterator[Side]:
    yield Side(tmp_path)


def test_only_packages_that_are_known_to_be_missing_are_asked_for(ben: Side) -> None:
    anna = ben
    with pytest.raises(TandemError, match="Nothing is known to be missing"):
        anna.installs.do(AskToInstall(device=BEN))
    anna.installs.lacking[BEN] = PACKAGES
    anna.installs.do(AskToInstall(device=BEN))
    assert anna.sent == [(BEN, InstallAsked(packages=PACKAGES))]
    assert anna.notices[-1].code == INSTALLED
    anna.linked = False
    with pytest.raises(TandemError, match="is not connected"):
        anna.installs.do(AskToInstall(device=BEN))


async def test_packages_are_installed_after_the_users_yes_and_the_other_laptop_is_told(ben: Side) -> None:
    ben.installs.on_asked(ANNA, InstallAsked(packages=PACKAGES))
    (asked,) = ben.notices
    assert (asked.code, asked.detail.split()) == (INSTALL_ASKED, [ANNA, *PACKAGES])
    assert "rare-tables==1.0 and pandas" in asked.what
    await asyncio.sleep(0)
    assert not ben.done.exists() and not ben.sent
    ben.installs.do(Install(device=ANNA, packages=PACKAGES))
    assert await ben.until_told() == InstallTold(packages=PACKAGES)
    assert ben.done.read_text() == "install rare-tables==1.0 pandas"
    assert ben.notices[-1].what == "rare-tables==1.0 and pandas are installed."


async def test_the_asking_laptop_learns_of_a_no_at_once_and_the_question_ends(ben: Side) -> None:
    ben.installs.on_asked(ANNA, InstallAsked(packages=PACKAGES))
    ben.installs.do(Install(device=ANNA, packages=PACKAGES, allowed=False))
    told = ben.sent[-1][1]
    assert isinstance(told, InstallTold) and told.problem is not None
    with pytest.raises(TandemError, match="does not ask to install that any more"):
        ben.installs.do(Install(device=ANNA, packages=PACKAGES))
    assert not ben.done.exists()
    anna = ben
    anna.installs.lacking[BEN] = PACKAGES
    anna.installs.do(AskToInstall(device=BEN))
    anna.installs.on_told(BEN, told)
    assert anna.notices[-1].what.endswith(
        ": Its user pressed No: rare-tables==1.0 and pandas are not installed."
    )


async def test_packages_missing_here_are_installed_here_and_nobody_else_is_told(ben: Side) -> None:
    ben.context.me = BEN
    with pytest.raises(TandemError, match="Nothing is known to be missing on this laptop"):
        ben.installs.do(AskToInstall(device=BEN))
    ben.installs.lacking[BEN] = PACKAGES
    ben.installs.do(AskToInstall(device=BEN))
    async with asyncio.timeout(60):
        await ben.ended.wait()
    assert ben.notices[-1].what == "rare-tables==1.0 and pandas are installed."
    assert ben.done.read_text() == "install rare-tables==1.0 pandas"
    assert not ben.sent


async def test_a_yes_counts_once_and_only_for_what_was_shown(ben: Side) -> None:
    ben.installs.on_asked(ANNA, InstallAsked(packages=("pandas",)))
    ben.installs.on_asked(ANNA, InstallAsked(packages=("evil",)))
    for device, packages in ((ANNA, ("pandas",)), (BEN, ("evil",)), (ANNA, ())):
        with pytest.raises(TandemError, match="does not ask to install that any more"):
            ben.installs.do(Install(device=device, packages=packages))
    ben.installs.do(Install(device=ANNA, packages=("evil",)))
    with pytest.raises(TandemError):
        ben.installs.do(Install(device=ANNA, packages=("evil",)))
    await ben.until_told()


@pytest.mark.parametrize(
    "package",
    [
        *(
            "--index-url=http://evil",
            "-r/etc/passwd",
            "./evil",
            "evil @ http://evil",
            "git+https://evil",
            "a b",
        ),
        *("https://evil/x.whl", "a;b", "a==1;b", "", "a\n--pre", "a>=1", "/tmp/x.whl", "a==", "x" * 101),
    ],
)
def test_anything_but_a_name_is_never_shown_nor_installed(ben: Side, package: str) -> None:
    ben.installs.on_asked(ANNA, InstallAsked(packages=("pandas", package)))
    ben.installs.on_asked(ANNA, InstallAsked(packages=()))
    ben.installs.on_asked(ANNA, InstallAsked(packages=("pandas",) * (MOST_PACKAGES + 1)))
    assert not ben.notices
    with pytest.raises(TandemError):
        ben.installs.do(Install(device=ANNA, packages=("pandas", package)))


async def test_a_failure_is_reported_on_both_laptops_with_its_last_lines(tmp_path: Path) -> None:
    ben = Side(tmp_path, "import sys\nprint('looking')\nsys.exit('ERROR: No matching distribution found')")
    ben.installs.on_asked(ANNA, InstallAsked(packages=("pandas",)))
    ben.installs.do(Install(device=ANNA, packages=("pandas",)))
    told = await ben.until_told()
    assert told.problem is not None and told.problem == ben.notices[-1]
    assert told.problem.what == "pandas could not be installed: ERROR: No matching distribution found"
    assert told.problem.detail.splitlines()[0] == "looking"


def test_an_installation_that_nobody_asked_for_is_not_reported(ben: Side) -> None:
    anna = ben
    anna.installs.on_told(BEN, InstallTold(packages=("pandas",)))
    assert not anna.notices
    anna.installs.lacking[BEN] = ("pandas",)
    anna.installs.do(AskToInstall(device=BEN))
    anna.installs.on_told(BEN, InstallTold(packages=("pandas",)))
    assert "pandas is installed on" in anna.notices[-1].what
