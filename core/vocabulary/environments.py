"""How this laptop can make a Tandem environment with another Python, if two laptops differ."""

from __future__ import annotations

import shutil
import sys
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path

import msgspec

from core.vocabulary.versions import ROOT

DISTRIBUTION = "tandem-laptops"
PYTHONS = ("3.11", "3.12", "3.13")
PROGRAMS = "Scripts" if sys.platform == "win32" else "bin"
"""The folder of programs in an environment."""


class _Repository(msgspec.Struct, frozen=True):
    vcs: str
    commit_id: str


class _DirectUrl(msgspec.Struct, frozen=True):
    url: str
    vcs_info: _Repository | None = None


@dataclass(frozen=True, slots=True)
class EnvironmentMaker:
    """What this laptop can make such an environment with.

    ``checkout``: the checkout whose `make` sets Tandem up; ``""`` for an installed Tandem. ``source``: what
    pip installs Tandem from; ``""``: unknown. ``pythons``: paths of interpreters, by minor version. ``uv``:
    whether uv is installed and can fetch other interpreters.
    """

    checkout: str = ""
    source: str = ""
    pythons: dict[str, str] = field(default_factory=dict)
    uv: bool = False

    def folder(self, name: str) -> Path:
        """The folder of the environment called ``name``: in the checkout, or else in the user's own
        folder."""
        return (
            Path(self.checkout) / f".venv-{name}" if self.checkout else Path.home() / f"tandem-python{name}"
        )


def find_maker(root: Path = ROOT) -> EnvironmentMaker:
    """What this laptop has. Reads the disk, which blocks for some milliseconds; starts no program."""
    is_checkout = (root / "Makefile").is_file() and (root / "pyproject.toml").is_file()
    found = {python: _interpreter(python) for python in PYTHONS}
    return EnvironmentMaker(
        checkout=str(root) if is_checkout and shutil.which("make") else "",
        source=str(root) if is_checkout else _source(),
        pythons={python: path for python, path in found.items() if path is not None},
        uv=shutil.which("uv") is not None,
    )


def _interpreter(python: str) -> str | None:
    found = shutil.which(f"python{python}")
    if found is None or Path(found).parent.name != "shims":
        return found
    # A pyenv shim starts this Python only in folders that select it.
    versions = Path(found).parents[1] / "versions"
    there = sorted(versions.glob(f"{python}.*/bin/python{python}"), key=lambda path: _patch(path.parents[1]))
    return str(there[-1]) if there else None


def _patch(version: Path) -> int:
    digits = version.name.split(".")[2]
    return int(digits) if digits.isdecimal() else -1  # such as a release candidate


def _source() -> str:
    """The wheel or folder that pip installed Tandem from, if recorded (PEP 610).

    Security invariant: never the bare name, under which a stranger may have put anything in the index.
    """
    try:
        recorded = metadata.distribution(DISTRIBUTION).read_text("direct_url.json")
        direct = msgspec.json.decode(recorded or "", type=_DirectUrl)
        repository = direct.vcs_info
        return f"{repository.vcs}+{direct.url}@{repository.commit_id}" if repository else direct.url
    except (metadata.PackageNotFoundError, msgspec.MsgspecError):
        return ""
