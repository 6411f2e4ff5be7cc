"""What is said of a laptop on a card: its state, what it has, how busy it is. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from app.run_words import listed
from core.vocabulary.answers import Refused
from core.vocabulary.errors import Problem
from core.vocabulary.holdings import Kept
from core.vocabulary.manifest import Difference
from core.vocabulary.readings import Hardware, Reading
from core.vocabulary.state import Device, Me
from core.vocabulary.text import plain
from core.vocabulary.versions import who_changes

STALE_AFTER_S = 5.0
"""Readings come once a second; after this long without one they are shown as old."""


NETWORKS = {
    "downloads": "Its trainers are sealed off: they reach only the members of the run, and what the script "
    "downloads.",
    "none": "Its trainers are sealed off: they reach only the members of the run.",
}
"""By ``ConsentAsked.network``."""
OPEN_PORT = Problem(
    code="open-port",
    what="This run opens TensorFlow's port on this laptop to everybody in your network: whoever reaches it "
    "can read and change your files.",
    fix="It has neither password nor encryption, and cannot be sealed on every laptop of this run. Allow it "
    "in a network whose members you all trust; it is for this one run.",
)


def changed_words(differs: Mapping[str, Difference]) -> str:
    """What of a project is not as it was allowed last: ``New: digits.keras. Changed: train.py.``"""
    if not differs:
        return "Its files are as you allowed them, but its arguments are not."
    by_kind = {
        words: [plain(path, 60) for path, kind in differs.items() if kind == of]
        for of, words in (("changed", "Changed"), ("new", "New"), ("gone", "No longer there"))
    }
    return " ".join(f"{words}: {listed(paths)}." for words, paths in by_kind.items() if paths)


def state_words(device: Device) -> tuple[str, str]:
    """What a device is at the moment, and the kind of label that says it."""
    if not device.paired:
        return ("Not paired", "faint") if device.seen else ("Gone", "faint")
    if not device.linked:
        if device.problem is not None:
            return "Not connected", "bad"
        return ("Connecting…", "faint") if device.seen else ("Not in this network", "faint")
    if device.problem is not None:
        versions = device.problem.code == "versions-differ"
        return ("Versions differ", "warning") if versions else ("No run possible", "warning")
    return ("Training", "good") if device.busy else ("Ready", "good")


def may_match(me: Me | None, device: Device) -> bool:
    """Whether an environment with its versions, made here, is what mends that they differ."""
    if me is None or device.versions is None or not device.paired or device.problem is None:
        return False
    return device.problem.code == "versions-differ" and who_changes(me.versions, device.versions) == "here"


def hardware_words(hardware: Hardware | None) -> str:
    """``NVIDIA RTX 3060 · Ryzen 7, 16 cores · 32 GB``; ``""`` where nothing is known."""
    if hardware is None:
        return ""
    gpus = ", ".join(hardware.gpus) or "CPU only"
    cores = "1 core" if hardware.cores == 1 else f"{hardware.cores} cores"
    cpu = f"{hardware.cpu}, {cores}" if hardware.cpu else cores
    return f"{gpus} · {cpu} · {size_words(hardware.memory_bytes)}"


def use_words(reading: Reading | None) -> str:
    """How busy a laptop is, on one line."""
    if reading is None:
        return ""
    parts = [f"CPU {reading.cpu_pct:.0f} %"]
    if reading.memory_total_bytes:
        share = 100 * reading.memory_used_bytes / reading.memory_total_bytes
        parts.append(f"memory {share:.0f} %")
    for gpu in reading.gpus[:2]:
        if gpu.use_pct is not None:
            parts.append(f"GPU {gpu.use_pct:.0f} %")
    return " · ".join(parts)


def in_the_network(addresses: Iterable[str]) -> tuple[str, ...]:
    """Those that another laptop could call: a loopback address is each laptop's own."""
    return tuple(each for each in addresses if not _is_loopback(each))


def _is_loopback(address: str) -> bool:
    return address.startswith(("127.", "[::1]", "localhost")) or address == "::1"


def addresses_words(addresses: tuple[str, ...], limit: int = 2) -> str:
    if addresses and not (addresses := in_the_network(addresses)):
        return "On this computer"
    shown = ", ".join(addresses[:limit])
    return f"{shown} and {len(addresses) - limit} more" if len(addresses) > limit else shown


def code_words(code: str) -> str:
    """A pairing code as ``408 355``: three digits are read at a glance."""
    digits = "".join(code.split())
    return f"{digits[:3]} {digits[3:]}"


def size_words(size: int) -> str:
    """``512 bytes``, ``1.4 MB``, ``16 GB``: in powers of 1024, as memory is sold."""
    value = float(size)
    for unit in ("bytes", "KB", "MB", "GB"):
        if value < 1024 or unit == "GB":
            break
        value /= 1024
    if unit == "bytes":
        return "1 byte" if size == 1 else f"{size} bytes"
    digits = f"{value:.1f}".removesuffix(".0") if value < 10 else f"{value:,.0f}"
    return f"{digits} {unit}"


def kept_words(kept: Kept) -> str:
    """What one laptop keeps of another, in a sentence."""
    if not kept.bytes and not kept.projects and not kept.runs:
        return "Nothing."
    counts = ((len(kept.projects), "project"), (len(kept.runs), "run"))
    parts = [f"{count} {word}{'s' if count != 1 else ''}" for count, word in counts if count]
    more = f" and {kept.more} more" if kept.more else ""
    return f"{' and '.join(parts)}{more}, {size_words(kept.bytes)}."


def problem_of(answer: object) -> Problem | None:
    """Why a command was refused; None where it was not."""
    return answer.problem if isinstance(answer, Refused) else None
