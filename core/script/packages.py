"""Checks which modules a script finds on this laptop, and how to add one to Tandem's environment. Blocks:
reads the disk, and imports nothing."""

from __future__ import annotations

import contextlib
import importlib
import sys
import sysconfig
from collections.abc import Iterable
from importlib import metadata
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import find_spec
from pathlib import Path

from core.vocabulary.versions import ROOT, is_frozen, pip_install

_DISTRIBUTIONS = {
    "Bio": "biopython",
    "PIL": "pillow",
    "attr": "attrs",
    "bs4": "beautifulsoup4",
    "cv2": "opencv-python-headless",
    "dateutil": "python-dateutil",
    "dotenv": "python-dotenv",
    "fitz": "pymupdf",
    "git": "gitpython",
    "mpl_toolkits": "matplotlib",
    "serial": "pyserial",
    "skimage": "scikit-image",
    "sklearn": "scikit-learn",
    "umap": "umap-learn",
    "usb": "pyusb",
    "yaml": "pyyaml",
}
"""Packages named differently from their modules."""


def missing(modules: Iterable[str]) -> tuple[str, ...]:
    """The top-level module names that a script would not find."""
    importlib.invalidate_caches()  # it may have been installed a moment ago
    return tuple(name for name in modules if not _is_here(name))


def _is_here(name: str) -> bool:
    try:
        spec = find_spec(name)
    except (ImportError, ValueError, AttributeError):  # third-party finders may raise these
        return True
    if spec is not None and not is_frozen() and _is_tandems_own(spec, name):
        # Tandem's own packages are hidden from scripts, which find others of the same name.
        elsewhere = [place for place in sys.path if Path(place).resolve() != ROOT]
        spec = PathFinder.find_spec(name, elsewhere)
    return spec is not None


def _is_tandems_own(spec: ModuleSpec, name: str) -> bool:
    places = [*(spec.submodule_search_locations or ()), spec.origin or ""]
    return any(Path(place) == ROOT / name for place in places)


def requirement(module: str) -> str:
    """The package to install for a module, at this laptop's version if installed here.

    ``""``: it comes from a folder of this laptop.
    """
    name = _DISTRIBUTIONS.get(module, module.replace("_", "-"))
    here = metadata.packages_distributions().get(module, [])
    if not here:
        return name if missing([module]) else ""
    chosen = name if name in here else here[0]
    with contextlib.suppress(metadata.PackageNotFoundError):
        found = metadata.distribution(chosen)
        return "" if found.read_text("direct_url.json") else f"{chosen}=={found.version}"
    return name


def installer() -> str:
    """The command that adds a package to this Tandem, without the package's name.

    ``""``: impossible in the one-folder program, which bundles everything.
    """
    if is_frozen():
        return ""
    prefix = Path(sys.prefix)
    if "pipx" in prefix.parts and prefix.parent.name == "venvs":
        return f"pipx inject {prefix.name}"
    command = pip_install("").rstrip()
    if sys.prefix == sys.base_prefix and _is_managed():
        command += " --break-system-packages"
    return command


def _is_managed() -> bool:
    """Whether the system keeps pip from its own Python (PEP 668), where Tandem was installed nevertheless."""
    return (Path(sysconfig.get_path("stdlib")) / "EXTERNALLY-MANAGED").is_file()
