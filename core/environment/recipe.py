"""How to make an environment with the wanted versions here: its folder and the commands."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from core.environment import problems
from core.supervisor.spawn import PROBE_ARGUMENT
from core.vocabulary.environments import DISTRIBUTION, PROGRAMS, PYTHONS, EnvironmentMaker
from core.vocabulary.errors import TandemError
from core.vocabulary.text import listed
from core.vocabulary.versions import MADE_FOR, ROOT, Versions, is_frozen

CONSTRAINTS = "constraints.txt"
"""In the environment's folder: the versions that Tandem is tested with, except for the wanted ones."""
PACKAGES = "packages.txt"
"""In the same folder: Tandem's own requirements, with the hashes of their files."""
CHECK_LIMIT_S = 20.0
_EXTRAS = {"gpu": "nvidia-cudnn-cu12", "tensorboard": "tensorboard"}
"""Each extra, with a package that shows that it is installed."""
_RESOURCES = ROOT / "resources"
_PINNED = _RESOURCES / "constraints.txt"
_PACKAGES = _RESOURCES / "packages.txt"
_UV = _RESOURCES / "uv.txt"
"""uv's version, with the hashes of its files."""
_PIP_INSTALL = ("-m", "pip", "install")
_HASHED = ("--only-binary", ":all:", "--require-hashes", "--requirement")
_LEFT_OUT = ("PYTHONPATH", "PYTHONHOME", "PYTHONSTARTUP", "VIRTUAL_ENV", "__PYVENV_LAUNCHER__", "PIP_TARGET")
_GIB = 1 << 30


@dataclass(frozen=True, slots=True)
class WantedVersions:
    """Minor version of Python (``3.12``), full versions of the packages; ``""``: any."""

    python: str
    tensorflow: str = ""
    keras: str = ""

    @classmethod
    def like(cls, theirs: Versions) -> WantedVersions:
        return cls(theirs.python, theirs.tensorflow, theirs.keras)

    @property
    def named(self) -> list[str]:
        """``Python 3.12``, ``Keras 3.15.1``: those that are not ``""``."""
        packages = (("TensorFlow", self.tensorflow), ("Keras", self.keras))
        return [f"Python {self.python}", *(f"{label} {version}" for label, version in packages if version)]

    def __str__(self) -> str:
        return listed(self.named)


@dataclass(frozen=True, slots=True)
class RecipeStep:
    """``words``: its purpose, for a person."""

    words: str
    command: tuple[str, ...]

    def __str__(self) -> str:
        return _shown(self.command)


@dataclass(frozen=True, slots=True)
class Recipe:
    """``source``: of Tandem. ``constraints``, ``packages``: contents of the files of these names.
    ``download_bytes``, ``disk_bytes``: estimates."""

    wanted: WantedVersions
    folder: Path
    source: str
    steps: tuple[RecipeStep, ...]
    constraints: str
    packages: str
    download_bytes: int
    disk_bytes: int

    @property
    def python(self) -> Path:
        return program(self.folder, "python")

    @property
    def install(self) -> str:
        """The command that installs another package into it, without the package's name."""
        return _shown((str(self.python), *_PIP_INSTALL))

    @property
    def tandem(self) -> Path:
        return program(self.folder, "tandem")

    def start(self, *words: str, home: str = "") -> str:
        """The command that starts it, for a shell."""
        return _shown((str(self.tandem), *(("--home", home) if home else ()), *words))


def _shown(command: tuple[str, ...]) -> str:
    return (subprocess.list2cmdline if sys.platform == "win32" else shlex.join)(command)


def program(folder: Path, name: str) -> Path:
    return folder / PROGRAMS / (f"{name}.exe" if sys.platform == "win32" else name)


def recipe(
    maker: EnvironmentMaker,
    wanted: WantedVersions,
    ours: Versions,
    *,
    folder: Path | None = None,
    extras: tuple[str, ...] = (),
    able: Callable[[str], bool] = lambda python: True,
    hashes: Path = _PACKAGES,
) -> Recipe:
    """The steps that make an environment with the ``wanted`` versions. ``folder``: overrides the default.
    ``able``: whether an interpreter can make an environment; otherwise uv does. ``hashes``: the file of
    Tandem's requirements with their hashes.

    Raises ``TandemError`` for an impossible environment.
    """
    _check(wanted)
    if not maker.source:
        raise TandemError.of(problems.unknown_source())
    folder = folder or maker.folder(_name(wanted, ours))
    found = sys.executable if wanted.python == ours.python else maker.pythons.get(wanted.python)
    inside, steps = str(program(folder, "python")), []
    if found is not None and able(found):
        steps.append(RecipeStep("Making the environment", (found, "-m", "venv", str(folder))))
        install = [inside, *_PIP_INSTALL]
    else:
        uv = "uv"
        if not maker.uv:
            target = folder / "uv"
            uv = str(target / "bin" / "uv")
            fetch = (sys.executable, *_PIP_INSTALL, "--target", str(target), *_HASHED, str(_UV))
            steps.append(RecipeStep("Fetching uv, to install Python with", fetch))
        make = (uv, "venv", "--seed", "--allow-existing", "--python", wanted.python, str(folder))
        steps.append(RecipeStep(f"Fetching Python {wanted.python}", make))
        install = [uv, "pip", "install", "--python", inside]
    if packages := _packages(wanted, hashes):
        # Everything requested here has hashes; Tandem itself, and other versions, have none.
        hashed = (*install, "--no-deps", *_HASHED, str(folder / PACKAGES))
        steps.append(RecipeStep("Fetching and installing the packages by their hashes", hashed))
    fill = (*install, "--constraint", str(folder / CONSTRAINTS), *_what(maker, extras))
    steps.append(RecipeStep("Installing Tandem and its other requirements", fill))
    steps.append(RecipeStep("Loading TensorFlow there", (str(program(folder, "tandem")), PROBE_ARGUMENT)))
    gpu = "gpu" in extras
    return Recipe(
        wanted=wanted,
        folder=folder,
        source=maker.source,
        steps=tuple(steps),
        constraints=_constraints(wanted),
        packages=packages,
        download_bytes=4 * _GIB if gpu else 800 << 20,
        disk_bytes=9 * _GIB if gpu else 3 * _GIB,
    )


def variables() -> dict[str, str]:
    """The environment for programs of another Python, without variables that are meant for this one."""
    return {name: value for name, value in os.environ.items() if name not in _LEFT_OUT}


def can_make(python: str) -> bool:
    """Whether the interpreter can make a ``venv``: Debian puts its parts into a separate package.

    Blocks for a moment.
    """
    with suppress(OSError, subprocess.TimeoutExpired):
        tried = subprocess.run(
            [python, "-I", "-c", "import ensurepip, venv"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            env=variables(),
            timeout=CHECK_LIMIT_S,
            check=False,
        )
        return tried.returncode == 0
    return False


def extras_here(version: Callable[[str], str] = metadata.version) -> tuple[str, ...]:
    """Tandem's extras that this environment has. Reads the packages' metadata."""

    def there(package: str) -> bool:
        try:
            return bool(version(package))
        except metadata.PackageNotFoundError:
            return False

    return tuple(extra for extra, package in _EXTRAS.items() if there(package))


def _check(wanted: WantedVersions) -> None:
    if is_frozen():
        raise TandemError.of(problems.frozen())
    if wanted.python not in PYTHONS:
        raise TandemError.of(problems.no_such_python(wanted.python))
    for label, package in (("TensorFlow", "tensorflow"), ("Keras", "keras")):
        version, made_for = getattr(wanted, package), MADE_FOR[package]
        # Final releases only: PEP 440's, and corrections of their packaging.
        release = rf"{re.escape(made_for)}\.(0|[1-9]\d{{0,3}})(\.post(0|[1-9]\d{{0,2}}))?"
        if version and not re.fullmatch(release, version, re.A):
            raise TandemError.of(problems.another_release(label, version, made_for))


def _name(wanted: WantedVersions, ours: Versions) -> str:
    """The environment's name: its Python, and the packages that differ from those of this environment."""
    others = (("tensorflow", wanted.tensorflow, ours.tensorflow), ("keras", wanted.keras, ours.keras))
    named = (f"-{label}{version}" for label, version, mine in others if version not in ("", mine))
    return "".join((wanted.python, *named))


def _what(maker: EnvironmentMaker, extras: tuple[str, ...]) -> tuple[str, ...]:
    chosen = f"[{','.join(extras)}]" if extras else ""
    if maker.checkout and maker.source == maker.checkout:
        return "--editable", f"{maker.source}{chosen}"
    if "://" in maker.source:
        return (f"{DISTRIBUTION}{chosen} @ {maker.source}",)
    return (f"{maker.source}{chosen}",)


def _constraints(wanted: WantedVersions) -> str:
    pinned = _PINNED.read_text(encoding="utf-8").splitlines() if _PINNED.is_file() else []
    chosen = _chosen(wanted)
    kept = [line for line in pinned if line.partition("==")[0].lower() not in chosen]
    return "\n".join((*kept, *(f"{package}=={version}" for package, version in chosen.items()), ""))


def _packages(wanted: WantedVersions, hashes: Path) -> str:
    """Tandem's requirements with hashes, without packages that are wanted in another version: their hashes
    are unknown here."""
    known = hashes.read_text(encoding="utf-8") if hashes.is_file() else ""
    kept = re.split(r"^(?=\S)", known, flags=re.M)
    for package, version in _chosen(wanted).items():
        kept = [each for each in kept if each.split("==")[0] != package or _version_of(each) == version]
    return "".join(kept)


def _version_of(requirement: str) -> str:
    return requirement.split()[0].partition("==")[2]


def _chosen(wanted: WantedVersions) -> dict[str, str]:
    chosen = {"tensorflow": wanted.tensorflow, "keras": wanted.keras}
    return {package: version for package, version in chosen.items() if version}
