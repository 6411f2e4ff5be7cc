"""How an environment with the versions that are wanted is made here: where it lies, and by which commands."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from core.environment import problems
from core.supervisor.spawn import PROBE_ARGUMENT
from core.vocabulary.environments import DISTRIBUTION, PROGRAMS, PYTHONS, EnvironmentMaker
from core.vocabulary.errors import TandemError
from core.vocabulary.versions import MADE_FOR, Versions, is_frozen

CONSTRAINTS = "constraints.txt"
"""In the environment's folder: the versions that Tandem is tested with, but for those that are wanted."""
_EXTRAS = {"gpu": "nvidia-cudnn-cu12", "tensorboard": "tensorboard"}
"""Each with a package that is there where it was installed."""
_PINNED = Path(__file__).resolve().parents[2] / "resources" / "constraints.txt"
_PIP_INSTALL = ("-m", "pip", "install")
_LEFT_OUT = ("PYTHONPATH", "PYTHONHOME", "PYTHONSTARTUP", "VIRTUAL_ENV", "__PYVENV_LAUNCHER__", "PIP_TARGET")
_GIB = 1 << 30


@dataclass(frozen=True, slots=True)
class WantedVersions:
    """Minor version of Python (``3.12``), whole ones of the packages; ``""``: as it comes."""

    python: str
    tensorflow: str = ""
    keras: str = ""

    @classmethod
    def like(cls, theirs: Versions) -> WantedVersions:
        return cls(theirs.python, theirs.tensorflow, theirs.keras)

    def __str__(self) -> str:
        packages = (("TensorFlow", self.tensorflow), ("Keras", self.keras))
        said = [f"Python {self.python}", *(f"{label} {version}" for label, version in packages if version)]
        return " and ".join((", ".join(said[:-1]), said[-1])) if len(said) > 1 else said[0]


@dataclass(frozen=True, slots=True)
class RecipeStep:
    """``words``: what it does, for a person."""

    words: str
    command: tuple[str, ...]

    def __str__(self) -> str:
        return _shown(self.command)


@dataclass(frozen=True, slots=True)
class Recipe:
    """``constraints``: text of the file of that name. ``download_bytes``, ``disk_bytes``: about so much."""

    wanted: WantedVersions
    folder: Path
    steps: tuple[RecipeStep, ...]
    constraints: str
    download_bytes: int
    disk_bytes: int

    @property
    def python(self) -> Path:
        return program(self.folder, "python")

    @property
    def install(self) -> str:
        """What puts another package into it, before the package's name."""
        return _shown((str(self.python), *_PIP_INSTALL))

    @property
    def tandem(self) -> Path:
        return program(self.folder, "tandem")


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
) -> Recipe:
    """``folder``: another one than the usual. Raises ``TandemError`` for what cannot be made."""
    _check(wanted)
    if not maker.source:
        raise TandemError.of(problems.unknown_source())
    folder = folder or maker.folder(_name(wanted, ours))
    found = sys.executable if wanted.python == ours.python else maker.pythons.get(wanted.python)
    inside, steps = str(program(folder, "python")), []
    if found is not None:
        steps.append(RecipeStep("Making the environment", (found, "-m", "venv", str(folder))))
        install = [inside, *_PIP_INSTALL]
    else:
        uv = "uv"
        if not maker.uv:
            target = folder / "uv"
            uv = str(target / "bin" / "uv")
            fetch = (sys.executable, *_PIP_INSTALL, "--target", str(target), "uv")
            steps.append(RecipeStep("Fetching uv, which fetches Pythons", fetch))
        make = (uv, "venv", "--seed", "--allow-existing", "--python", wanted.python, str(folder))
        steps.append(RecipeStep(f"Fetching Python {wanted.python}", make))
        install = [uv, "pip", "install", "--python", inside]
    fill = (*install, "--constraint", str(folder / CONSTRAINTS), *_what(maker, extras))
    steps.append(RecipeStep("Fetching and installing the packages", fill))
    steps.append(RecipeStep("Loading TensorFlow there", (str(program(folder, "tandem")), PROBE_ARGUMENT)))
    gpu = "gpu" in extras
    return Recipe(
        wanted=wanted,
        folder=folder,
        steps=tuple(steps),
        constraints=_constraints(wanted),
        download_bytes=4 * _GIB if gpu else 800 << 20,
        disk_bytes=9 * _GIB if gpu else 3 * _GIB,
    )


def variables() -> dict[str, str]:
    """For programs of another Python: without what is for this one, and would mislead them."""
    return {name: value for name, value in os.environ.items() if name not in _LEFT_OUT}


def extras_here(version: Callable[[str], str] = metadata.version) -> tuple[str, ...]:
    """Those of Tandem's that this environment has. Reads the packages' metadata."""

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
        if version and not re.fullmatch(rf"{re.escape(made_for)}\.[\w.+-]{{1,30}}", version, re.A):
            raise TandemError.of(problems.another_release(label, version, made_for))


def _name(wanted: WantedVersions, ours: Versions) -> str:
    """By the Python, and by the packages where they are other ones than Tandem's own environment has."""
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
    chosen = {"tensorflow": wanted.tensorflow, "keras": wanted.keras}
    chosen = {package: version for package, version in chosen.items() if version}
    kept = [line for line in pinned if line.partition("==")[0].lower() not in chosen]
    return "\n".join((*kept, *(f"{package}=={version}" for package, version in chosen.items()), ""))
