"""Checks that Tandem's packages exist for other systems: ``python packaging/resolve.py [WHEEL]``.

Asks the package index through pip, for each system and Python of docs/windows-and-macos.md, and installs
nothing. pip evaluates conditions (``sys_platform == ...``) for the system that it runs on.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LIMIT_S = 900
PYTHONS = ("3.11", "3.12", "3.13")
SYSTEMS = {
    "Windows x64": ("win_amd64",),
    "macOS on Apple silicon": ("macosx_15_0_arm64", "macosx_15_0_universal2"),
    "Linux aarch64": (
        *(f"manylinux_2_{minor}_aarch64" for minor in range(39, 16, -1)),
        "manylinux2014_aarch64",  # for pip with a named platform, this differs from manylinux_2_17
    ),
    "macOS on Intel": ("macosx_15_0_x86_64", "macosx_15_0_universal2"),
    "Windows on ARM": ("win_arm64",),
}


def build(folder: Path) -> Path:
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, check=True)
    (wheel,) = folder.glob("*.whl")
    return wheel


def resolve(wheel: Path, platforms: tuple[str, ...], python: str, folder: Path) -> tuple[bool, str]:
    """Whether everything exists, and what was found, or pip's last lines."""
    report = folder / "report.json"
    command = [sys.executable, "-m", "pip", "install", "--dry-run", "--ignore-installed", "--quiet"]
    command += ["--disable-pip-version-check", "--only-binary", ":all:", "--python-version", python]
    command += [word for platform in platforms for word in ("--platform", platform)]
    command += ["--constraint", str(ROOT / "resources" / "constraints.txt")]
    command += ["--target", str(folder / "nothing"), "--report", str(report), str(wheel)]
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=LIMIT_S
        )
    except subprocess.TimeoutExpired:
        return False, f"pip did not end in {LIMIT_S} s"
    if done.returncode:
        words = [line for line in done.stderr.splitlines() if line.startswith("ERROR:")]
        return False, (words or [f"pip ended with status {done.returncode}"])[0]
    found = {
        each["metadata"]["name"].lower(): each["metadata"]["version"]
        for each in json.loads(report.read_text(encoding="utf-8"))["install"]
    }
    return True, f"{len(found)} packages, TensorFlow {found['tensorflow']}, Keras {found['keras']}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("wheel", nargs="?", type=Path, help="default: made from this checkout")
    parser.add_argument("--system", action="append", choices=SYSTEMS, help="only this one")
    arguments = parser.parse_args()
    missing = 0
    with tempfile.TemporaryDirectory(prefix="tandem-resolve-") as place:
        folder = Path(place)
        wheel = arguments.wheel or build(folder)
        for system in arguments.system or SYSTEMS:
            for python in PYTHONS:
                resolved, told = resolve(wheel, SYSTEMS[system], python, folder)
                missing += not resolved
                print(f"{system:<24}{python:<6}{'yes' if resolved else 'NO'}  {told}", flush=True)
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
