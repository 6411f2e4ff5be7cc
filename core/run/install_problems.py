"""Notices and refusals about packages that one laptop asks another to install."""

from __future__ import annotations

from collections.abc import Sequence

from core.vocabulary.errors import INSTALL_ASKED, INSTALLED, Problem
from core.vocabulary.ids import DeviceId
from core.vocabulary.text import listed, plain


def asked(name: str, packages: Sequence[str]) -> Problem:
    return Problem(
        code=INSTALLED,
        what=f"{plain(name, 40)} was asked to install {_all(packages)}.",
        fix="Its user decides there. You will hear when it is done.",
    )


def wanted_here(name: str, device: DeviceId, packages: Sequence[str], installer: str) -> Problem:
    """``detail``: the laptop, and each package."""
    command = f"{installer} {' '.join(packages)}"
    return Problem(
        code=INSTALL_ASKED,
        what=f"{plain(name, 40)} asks to install {_all(packages)} here, for a script to train.",
        fix="A package can do anything you can do. Allow only what you know. Install runs this for you: "
        f"`{command}`",
        detail=" ".join([device, *packages]),
        command=command,
    )


def under_way(packages: Sequence[str]) -> Problem:
    return Problem(code=INSTALLED, what=f"Installing {_all(packages)}…")


def done_here(packages: Sequence[str]) -> Problem:
    return Problem(code=INSTALLED, what=f"{_all(packages)} {_is(packages)} installed.")


def failed(packages: Sequence[str], said: str) -> Problem:
    return Problem(
        code=INSTALLED,
        what=f"{_all(packages)} could not be installed: {plain(said.splitlines()[-1], 300)}",
        fix="Check the connection to the internet and the name of the package, or install it by hand.",
        detail=said,
    )


def declined(packages: Sequence[str]) -> Problem:
    return Problem(
        code=INSTALLED,
        what=f"Its user pressed No: {_all(packages)} {_is(packages)} not installed.",
        fix="Talk to them and ask again, or train without that laptop.",
    )


def done_there(name: str, packages: Sequence[str], problem: Problem | None) -> Problem:
    """``problem``: why it failed there."""
    if problem is None:
        return Problem(
            code=INSTALLED, what=f"{_all(packages)} {_is(packages)} installed on {plain(name, 40)}."
        )
    return Problem(
        code=INSTALLED,
        what=f"{plain(name, 40)}: {plain(problem.what, 400)}",
        fix=plain(problem.fix, 300),
        detail=problem.detail,
    )


def nothing_lacks(name: str) -> Problem:
    return Problem(
        code="nothing-to-install",
        what=f"Nothing is known to be missing on {plain(name, 40)}.",
        fix="Choose the script on the Train screen: its packages are checked there.",
    )


def not_connected(name: str) -> Problem:
    return Problem(
        code="device-offline",
        what=f"{plain(name, 40)} is not connected.",
        fix="Open Tandem there, and ask again.",
    )


def not_asked(name: str) -> Problem:
    return Problem(
        code="not-asked",
        what=f"{plain(name, 40)} does not ask to install that any more.",
        fix="Look at what it asks for now.",
    )


def _all(packages: Sequence[str]) -> str:
    return listed([plain(each, 100) for each in packages])


def _is(packages: Sequence[str]) -> str:
    return "is" if len(packages) == 1 else "are"
