"""Whether the installed packages are the ones that Tandem was made for, and whether TensorFlow loads."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Sequence

from core.doctor.view import Examined, error, note, ok, warning
from core.supervisor import spawn
from core.vocabulary import units
from core.vocabulary.answers import Finding
from core.vocabulary.environments import PYTHONS
from core.vocabulary.state import Device
from core.vocabulary.versions import (
    MADE_FOR,
    ROOT,
    Versions,
    install_command,
    install_fix,
    installed,
    is_frozen,
    pip_install,
)

TOPIC = "software"
_CUDA = "'tensorflow[and-cuda]==2.21.*'"
LOAD_LIMIT_S = 120.0


def check_python(view: Examined, versions: Versions | None = None) -> Finding:
    python = (versions or installed()).python
    if python in PYTHONS:
        return ok("python", TOPIC, f"Python {python}.")
    return error(
        "python", TOPIC, f"Python {python} is not one that TensorFlow runs on here.", "Install Python 3.12."
    )


def check_system(view: Examined, platform: str = sys.platform) -> Finding | None:
    if platform == "linux":
        return None
    name = {"win32": "Windows", "darwin": "macOS"}.get(platform, platform)
    return note(
        "system",
        TOPIC,
        f"Tandem was built and tested on Linux; on {name} nobody has tried it yet.",
        "See docs/windows-and-macos.md, and report what happens.",
    )


def check_tensorflow(view: Examined, versions: Versions | None = None) -> list[Finding]:
    """Read the packages' metadata: nothing is loaded."""
    versions = versions or installed()
    findings = []
    for package, label in (("tensorflow", "TensorFlow"), ("keras", "Keras")):
        version, wanted = getattr(versions, package), MADE_FOR[package]
        needed = f"'{package}=={wanted}.*'"
        if not version:
            what, fix = f"{label} is not installed.", install_fix(needed)
            findings.append(error(package, TOPIC, what, fix, command=install_command(needed)))
        elif not version.startswith(f"{wanted}."):
            what = f"{label} {version} is installed; Tandem is made for {wanted}."
            fix = install_fix(needed, where=" on every laptop")
            findings.append(warning(package, TOPIC, what, fix, command=install_command(needed)))
        else:
            findings.append(ok(package, TOPIC, f"{label} {version}."))
    return findings


def check_peers(view: Examined) -> list[Finding]:
    """Paired devices that cannot take part in a run now, according to their links."""
    devices = [device for device in view.state.devices.values() if device.paired]
    return [_of_peer(device) for device in devices]


def _of_peer(device: Device) -> Finding:
    name, problem = device.shown_name, device.problem
    if problem is not None:
        return warning(f"device-{problem.code}", "devices", f"{name}: {problem.what}", problem.fix)
    return ok(
        "device", "devices", f"{name} is {'connected' if device.linked else 'paired, but not here now'}."
    )


async def check_loading(
    view: Examined, *, command: Sequence[str] | None = None, limit_s: float = LOAD_LIMIT_S
) -> Finding:
    """Load TensorFlow in a separate process: a broken driver or package may end that process."""
    program = list(command or probe_command())
    child = await asyncio.create_subprocess_exec(
        *program,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        cwd=ROOT if ROOT.is_dir() else None,  # `-m` searches the working directory first
        env=spawn.environment(),
    )
    try:
        async with asyncio.timeout(limit_s):
            said, complained = await child.communicate()
    except TimeoutError:
        return error(
            "tensorflow-slow",
            TOPIC,
            f"TensorFlow did not load within {limit_s:g} s.",
            "Close other programs and check again; an unresponsive GPU driver can also cause this.",
        )
    finally:
        if child.returncode is None:
            child.kill()
            await child.wait()
    try:
        tensorflow, keras, gpus, seconds = json.loads(said.splitlines()[-1])
    except (ValueError, IndexError):
        lines = complained.decode("utf-8", "replace").strip().splitlines()
        why = lines[-1][:300] if lines else f"it ended with status {child.returncode}"
        anew = "--force-reinstall 'tensorflow==2.21.*'"
        return error(
            "tensorflow-broken",
            TOPIC,
            f"TensorFlow does not load: {why}",
            install_fix(anew),
            command=install_command(anew),
        )
    uses = f"uses {', '.join(gpus)}" if gpus else "finds no GPU and uses the CPU"
    what = f"TensorFlow {tensorflow} with Keras {keras} loads in {units.duration(seconds)} and {uses}."
    hardware = view.state.me.hardware if view.state.me else None
    if not gpus and hardware and any("nvidia" in name.lower() for name in hardware.gpus):
        return note("tensorflow-cpu", TOPIC, what, _gpu_fix())
    return ok("tensorflow-loads", TOPIC, what)


def _gpu_fix() -> str:
    if sys.platform == "win32":
        return "TensorFlow uses NVIDIA's cards on Windows only inside WSL2: install Tandem there."
    if is_frozen():
        return (
            f"This program computes on the CPU. To use the GPU, install Tandem with pip and {_CUDA} instead."
        )
    return f"Install TensorFlow with its CUDA packages: {pip_install(_CUDA)}"


def probe_command() -> list[str]:
    return [*spawn.program(), spawn.PROBE_ARGUMENT]
