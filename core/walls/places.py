"""Paths that a walled trainer may open beside its own folders: the system, Python's environment, devices.
Linux."""

from __future__ import annotations

import contextlib
import os
import site
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from core.vocabulary.versions import ROOT

_SYSTEM = ("/usr", "/lib", "/lib32", "/lib64", "/bin", "/sbin", "/etc", "/opt", "/nix/store", "/gnu/store")
_KERNEL = ("/proc", "/sys", "/run/systemd/resolve")
_DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/shm")
_GRAPHICS = ("nvidia*", "dri", "kfd", "dxg", "accel")
_PACKAGES = ("core", "app", "tandem_laptops", "resources")
KERAS = ".keras"
"""Below the user's folder, unless KERAS_HOME names another."""
DATASETS = ("datasets", "models")
"""Below that: what Keras downloaded for the user's own scripts."""
CACHES = (".cache/matplotlib/*.json", ".config/matplotlib/matplotlibrc", ".keras/keras.json")
"""Below the user's folder: caches that libraries would rebuild in each run, and their settings. Copied."""
CERTIFICATES = ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")
"""Variables that name a file of public certificates, with which downloads verify servers. Copied."""
MOST_COPIED_BYTES = 10_000_000
"""Limit of each of these files."""
MOST_COPIED_DATA_BYTES = 500_000_000
"""Limit of a file for Keras' cache that another laptop sent; larger ones are linked."""


def readable(private: Sequence[str], system: Sequence[str] = _SYSTEM) -> tuple[str, ...]:
    """Paths that may be read. ``private``: paths that none of them may contain. Skips a folder of Python's
    that contains one; replaces a system folder that does by its other entries."""
    python = (sys.prefix, sys.base_prefix, sys.exec_prefix, sys.base_exec_prefix, sys.executable, *sys.path)
    python = (*python, *filter(None, [vars(sys).get("_MEIPASS")]))
    # CUDA may be installed in a folder of the user's.
    libraries = os.environ.get("LD_LIBRARY_PATH", "").split(os.pathsep)
    python = (*python, *(each for each in libraries if Path(each).is_absolute()))
    # The folder of a checkout contains more than Tandem.
    found = [each for each in dict.fromkeys(python) if each and Path(each).resolve() != ROOT]
    if "site-packages" in ROOT.parts:
        found.append(str(ROOT))
    hidden = [os.path.realpath(each) for each in private]
    found = [each for each in found if not _holds(each, hidden)]
    system = [part for each in system for part in _without(each, hidden)]
    return (*system, *_KERNEL, *found, *(str(ROOT / name) for name in _PACKAGES))


def _holds(folder: str, hidden: Sequence[str]) -> bool:
    return any(Path(one).is_relative_to(os.path.realpath(folder)) for one in hidden)


def _without(folder: str, hidden: Sequence[str]) -> Iterator[str]:
    """The folder, or its parts without the ``hidden`` ones: a service's home may lie in /opt.

    Links among the parts are skipped, as they may lead to a hidden one.
    """
    real = os.path.realpath(folder)
    if not _holds(real, hidden):
        yield folder
    elif real not in hidden:
        with contextlib.suppress(OSError), os.scandir(real) as parts:
            for part in parts:
                if not part.is_symlink():
                    yield from _without(part.path, hidden)


def keras_home() -> str:
    """KERAS_HOME; ``""``: the default, also where KERAS_HOME is the user's own folder or contains it."""
    named = os.environ.get("KERAS_HOME", "")
    if not Path(named).is_absolute() or Path.home().is_relative_to(os.path.realpath(named)):
        return ""
    return named


def devices() -> tuple[str, ...]:
    """Readable and writable, including graphics cards."""
    return (*_DEVICES, *(str(path) for name in _GRAPHICS for path in Path("/dev").glob(name)))


def user_site() -> str:
    """PYTHONUSERBASE for a process with another HOME; ``""`` where Python does not use it."""
    return site.getuserbase() if site.ENABLE_USER_SITE else ""
