"""Package versions: which must agree between laptops before a run, and how to fix a difference."""

from __future__ import annotations

import platform
import re
import shlex
import subprocess
import sys
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

import msgspec

from core.vocabulary.bounds import Name, Word
from core.vocabulary.errors import Problem

TANDEM = "0.1.0"
"""The only place for this number: ``pyproject.toml`` reads it from here."""

ROOT = Path(__file__).resolve().parents[2]
"""The folder with Tandem's packages, in a checkout or installed."""

MADE_FOR = {"tensorflow": "2.21", "keras": "3.15"}
"""As ``pyproject.toml`` has them."""

LINK_PROTOCOL = 6
"""Version of all communication between laptops: messages on a link, files beside it, the trainers' exchange.
Nodes with different versions exchange nothing beyond the hello."""
VOCABULARY = 2
"""Version of the commands and events of ``--jsonl`` and the local socket."""


_PACKAGES = ("Python", "TensorFlow", "Keras")
"""Packages whose version another environment can change."""


class Versions(msgspec.Struct, frozen=True, kw_only=True):
    """Read from the installed packages' metadata: nothing heavy is imported."""

    tandem: Word
    protocol: int
    python: Word
    tensorflow: Word
    keras: Word
    platform: Name
    seal: Word = ""
    """How its trainers that meet through TensorFlow are sealed (``core.supervisor.seals``); ``""``: not at
    all."""
    frozen: bool = False
    """A bundled program, which cannot change its packages: the other laptop has to."""


def installed() -> Versions:
    """This laptop's versions; ``""`` for a package that is missing."""
    return Versions(
        tandem=TANDEM,
        protocol=LINK_PROTOCOL,
        python=".".join(platform.python_version_tuple()[:2]),
        tensorflow=_version("tensorflow"),
        keras=_version("keras"),
        platform=f"{platform.system()} {platform.machine()}",
        frozen=is_frozen(),
    )


def sentence(versions: Versions) -> str:
    """The output of ``tandem --version``."""
    packages = (("Python", versions.python), ("TensorFlow", versions.tensorflow), ("Keras", versions.keras))
    under = ", ".join(f"{label} {version or 'missing'}" for label, version in packages)
    return f"Tandem {versions.tandem} ({under})"


def difference(ours: Versions, theirs: Versions, name: str) -> Problem | None:
    """The first difference that rules out a run together, as ``name``'s problem; None if they agree.

    Only the side with the older version is told how to get the newer one, so that not both users change
    theirs. A frozen program keeps its version.
    """
    found = _first_difference(ours, theirs)
    if found is None:
        return None
    label, mine, other = found
    return Problem(
        code="versions-differ",
        what=f"{label} is {mine or 'missing'} here and {other or 'missing'} on {name}.",
        fix=_agreement(label, mine, name, who_changes(ours, theirs)),
    )


def who_changes(ours: Versions, theirs: Versions) -> Literal["here", "there", ""]:
    """Which side should make an environment like the other's; ``""``: neither would help."""
    found = _first_difference(ours, theirs)
    if found is None or found[0] not in _PACKAGES or (is_frozen() and theirs.frozen):
        return ""
    if is_frozen() or theirs.frozen:
        return "there" if is_frozen() else "here"
    mine, other = _numbers(found[1]), _numbers(found[2])
    return "" if mine == other else "here" if mine < other else "there"


def _first_difference(ours: Versions, theirs: Versions) -> tuple[str, str, str] | None:
    """The package, our version, theirs."""
    for label, mine, other in (
        ("Tandem's link protocol", str(ours.protocol), str(theirs.protocol)),
        ("Python", ours.python, theirs.python),
        ("TensorFlow", ours.tensorflow, theirs.tensorflow),
        ("Keras", ours.keras, theirs.keras),
    ):
        if mine != other:
            return label, mine, other
    return None


def _agreement(label: str, mine: str, name: str, who: str) -> str:
    if not who:
        return same_on_both(label)
    if who == "there":
        why = f"{label} comes with Tandem's program here" if is_frozen() else f"{name} has the older one"
        return f"{why}. Press “Have the same here…” on {name}'s Devices page to get {label} {mine}."
    return f"Press “Have the same here…” on Devices, or run: tandem environment {shlex.quote(name)}"


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(digits) for digits in re.findall(r"\d+", version))


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return ""


def is_frozen() -> bool:
    """Whether this is the one-folder program: it carries every package, and pip cannot change them."""
    return bool(getattr(sys, "frozen", False))


def pip_install(what: str) -> str:
    """The command that installs ``what`` into this Tandem's environment.

    ``what`` is quoted for a POSIX shell.
    """
    python = shlex.quote(sys.executable)
    if sys.platform == "win32":  # its shell has no single quotes
        python, what = subprocess.list2cmdline([sys.executable]), what.replace("'", '"')
    if find_spec("pip") is None:  # uv makes environments without it
        return f"uv pip install --python {python} {what}"
    return f"{python} -m pip install {what}"


def install_fix(what: str, *, where: str = "") -> str:
    """How to fix a missing or wrong package.

    ``what``: as it follows ``pip install``. ``where``: such as `` on every laptop``.
    """
    if is_frozen():
        return f"It comes with Tandem's program: replace the whole program with the newest one{where}."
    return f"Install it{where}: {install_command(what)}"


def install_command(what: str) -> str:
    """The command in ``install_fix``; ``""`` in the program that carries its packages."""
    return "" if is_frozen() else pip_install(what)


def same_on_both(label: str) -> str:
    """For two laptops whose ``label`` differs."""
    if is_frozen():
        return f"{label} comes with Tandem's program: use the same Tandem on both laptops to train together."
    return f"Install the same {label} on both laptops to train together."
