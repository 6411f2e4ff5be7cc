"""Freezes Tandem into the folder dist/tandem, then tries it: ``python packaging/build.py [--no-smoke]``."""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LIMIT_S = 3600.0
FREE_BYTES = 6 << 30
LARGE_BYTES = 8 << 20


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--no-smoke", action="store_true", help="build only")
    arguments = parser.parse_args()
    if shutil.disk_usage(ROOT).free < FREE_BYTES:
        print(f"Freezing takes {FREE_BYTES >> 30} GB beside the project. Free some space and try again.")
        return 1
    if sys.platform != "linux":
        print("This was only ever tried on Linux; go on, and tell what is missing.")
    began_s = time.monotonic()
    code = freeze()
    if code:
        print(f"PyInstaller ended with status {code}; its last lines say why.")
        return code
    folder = ROOT / "dist" / "tandem"
    saved = strip(folder)
    print(f"stripped    {saved / 1e6:.0f} MB of symbols that only a debugger reads")
    print(f"built       {folder.relative_to(ROOT)} in {time.monotonic() - began_s:.0f} s")
    if arguments.no_smoke:
        return 0
    return subprocess.run([sys.executable, str(ROOT / "packaging" / "smoke.py"), str(folder)]).returncode


def freeze() -> int:
    """PyInstaller's exit status. Runs it in a separate process: it changes much of the one it runs in."""
    command = [sys.executable, "-m", "PyInstaller", str(ROOT / "packaging" / "tandem.spec")]
    command += ["--noconfirm", "--log-level", "WARN"]
    command += ["--distpath", str(ROOT / "dist"), "--workpath", str(ROOT / "build" / "pyinstaller")]
    # It imports packages to see what they load, which needs neither a GPU nor a screen.
    quiet = {"CUDA_VISIBLE_DEVICES": "-1", "TF_CPP_MIN_LOG_LEVEL": "3", "QT_QPA_PLATFORM": "offscreen"}
    try:
        return subprocess.run(
            command, cwd=ROOT, env={**os.environ, **quiet}, stdin=subprocess.DEVNULL, timeout=LIMIT_S
        ).returncode
    except subprocess.TimeoutExpired:
        print(f"PyInstaller was ended after {LIMIT_S / 60:.0f} minutes.")
        return 1


def strip(folder: Path) -> int:
    """Strips symbol tables from TensorFlow's libraries: training never reads them. Returns the bytes saved.

    Other libraries are left alone: some were changed by tools after which `strip` makes them unusable.
    """
    program = shutil.which("strip") if sys.platform == "linux" else None
    saved = 0
    for library in (folder / "_internal" / "tensorflow").rglob("*.so*"):
        if program is None or library.is_symlink() or library.stat().st_size < LARGE_BYTES:
            continue
        before = library.stat().st_size
        subprocess.run([program, "--strip-unneeded", str(library)], timeout=LIMIT_S, check=True)
        saved += before - library.stat().st_size
    return saved


if __name__ == "__main__":
    sys.exit(main())
