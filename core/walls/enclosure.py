"""Puts walls around this process, before it has a second thread. Linux; other systems have none."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
import threading
from pathlib import Path

from core.runtime.removal import remove_tree
from core.vocabulary.trainer_messages import Enclosure
from core.walls import capabilities, landlock, levels, places, system_calls
from core.walls.levels import Level


class TooLate(Exception):
    """The process has several threads, of which the walls would confine only one."""


def prepare(enclosure: Enclosure) -> None:
    """Make the enclosure's folders. Call it outside, before the process begins. Raises ``OSError``.

    Security invariant: its home is new. A leftover of an earlier script, such as a link, could redirect
    writes elsewhere.
    """
    remove_tree(Path(enclosure.home))
    Path(enclosure.home).mkdir(mode=0o700, parents=True)
    for folder in enclosure.folders:
        Path(folder).mkdir(mode=0o700, parents=True, exist_ok=True)
    if sys.platform == "win32":
        return  # scripts have this user's own home there, and ordinary users can't make links
    keras = [(Path(enclosure.home, places.KERAS, each.name), each) for each in _datasets(enclosure)]
    for own, _ in keras:
        own.mkdir(parents=True, exist_ok=True)
    for cached in places.CACHES:
        for each in Path(enclosure.user).glob(cached):
            _copy(each, Path(enclosure.home, each.relative_to(enclosure.user)))
    for opened in enclosure.opened:
        # The script finds an opened path below its own home.
        if opened.asked.startswith("~/"):
            link = Path(os.path.realpath(enclosure.home), opened.asked[2:].lstrip("/"))
            with contextlib.suppress(OSError):
                # Create nothing below another link: this user's own data is there.
                if os.path.realpath(link.parent) == str(link.parent) and not os.path.lexists(link):
                    link.parent.mkdir(parents=True, exist_ok=True)
                    # A copy, since Keras overwrites a file whose hash is not the one that it expects.
                    is_keras = opened.asked.startswith(f"~/{places.KERAS}/")
                    if not (is_keras and _copy(Path(opened.path), link, places.MOST_COPIED_DATA_BYTES)):
                        link.symlink_to(opened.path)
    for own, theirs in keras:
        # The data sets may be missing, or belong to root.
        with contextlib.suppress(OSError):
            found = list(theirs.iterdir())
            names = {each.name for each in (*found, *own.iterdir())}
            for each in found:
                # Keras extracts an archive anew, into a folder that the script must be able to write to.
                extracted = f"{each.name}_archive" in names or each.name.endswith("_extracted")
                # A file that was sent takes precedence over this user's own of the same name.
                if not extracted and not os.path.lexists(own / each.name):
                    (own / each.name).symlink_to(each)


def computing_variables(given: dict[str, str]) -> dict[str, str]:
    """The variables of ``given`` that configure computing, without the user's credentials (tokens, agents,
    buses).

    All of them on Windows, which has no walls, and where Python does not start without SYSTEMROOT.
    """
    if sys.platform == "win32":
        return given
    return {name: text for name, text in given.items() if name in _NAMES or name.startswith(_BEGINNINGS)}


def environment(enclosure: Enclosure, given: dict[str, str]) -> dict[str, str]:
    """The environment of a walled trainer, made from the variables in ``given``."""
    kept = computing_variables(given)
    if sys.platform == "win32":
        return kept
    if enclosure.downloads:
        kept |= {name: text for name, text in given.items() if name.lower() in ("http_proxy", "https_proxy")}
    own = {"HOME": enclosure.home, "TMPDIR": enclosure.home}
    for name in filter(given.get, places.CERTIFICATES):
        copy = Path(enclosure.home, ".certificates", name)
        if _copy(Path(given[name]), copy):
            own[name] = str(copy)
    if base := places.user_site():
        own["PYTHONUSERBASE"] = base
    return kept | own


def enclose(enclosure: Enclosure, *more: int, level: Level | None = None) -> None:
    """Confine this process from here on. ``more``: further ports that may be called. Raises ``OSError``, and
    ``TooLate``.

    ``level``: act as a system with no more than that; None: this system's own.
    """
    level = level or levels.found()
    if level.walls == "none":
        return
    if threads() > 1:
        raise TooLate("the process has several threads already")
    system_calls.no_new_privileges()
    datasets = map(str, _datasets(enclosure))
    shared = enclosure.calls is not None
    with landlock.Ruleset(ports=shared, level=level.landlock) as rules:
        rules.allow((*places.readable(enclosure.private), *datasets), landlock.READ)
        # An earlier trainer of the run may have been able to write where these are.
        rules.allow(enclosure.reads, landlock.READ, links=False)
        for each in enclosure.opened:
            rights = landlock.WRITE if each.write else landlock.READ
            rules.allow([each.path], rights, links=False, real=True)
        rules.allow((*enclosure.folders, *places.devices()), landlock.WRITE)
        if shared:
            rules.allow_ports(filter(None, [enclosure.port]), landlock.LISTEN)
            rules.allow_ports((*(enclosure.calls or ()), *more), landlock.CALL)
        rules.restrict()
    capabilities.give_up()
    system_calls.forbid(network=shared)


def _datasets(enclosure: Enclosure) -> list[Path]:
    """This user's data set folders."""
    home = Path(enclosure.keras or Path(enclosure.user, places.KERAS))
    return [home / name for name in places.DATASETS]


def _copy(file: Path, to: Path, most_bytes: int = places.MOST_COPIED_BYTES) -> bool:
    """Copy a file, before the script runs. False: it is missing, unreadable, too large, or a folder."""
    try:
        if file.is_dir() or file.stat().st_size > most_bytes:
            return False
        to.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, to)
    except OSError:
        return False
    return True


def threads() -> int:
    """Number of this process's threads, including those that Python does not know."""
    try:
        return len(list(Path("/proc/self/task").iterdir()))
    except OSError:
        return threading.active_count()


_NAMES = (
    *("PATH", "LANG", "LANGUAGE", "TZ", "USER", "LOGNAME", "TERM", "VIRTUAL_ENV", "CONDA_PREFIX"),
    *("LD_LIBRARY_PATH", "LD_PRELOAD", "MPLBACKEND", "NUMEXPR_NUM_THREADS", "KERAS_BACKEND"),
)
_BEGINNINGS = (
    *(
        "LC_",
        "PYTHON",
        "TANDEM_",
        "TF_",
        "XLA_",
        "CUDA",
        "NVIDIA_",
        "NCCL_",
        "ROCM_",
        "HIP_",
        "HSA_",
        "GRPC_",
    ),
    *("OMP_", "KMP_", "MKL_", "OPENBLAS_", "GOTO_", "MALLOC_", "TCMALLOC_", "GLIBC_", "ABSL_", "ONEDNN_"),
)
