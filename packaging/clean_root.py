"""Tries Tandem's Debian package as a new user: ``python packaging/clean_root.py ROOT [PACKAGE]``. As root.

ROOT: a fresh Debian without Python: `debootstrap --variant=minbase bookworm ROOT` makes one; Xvfb is added.
The trial runs in its own namespaces, as an ordinary user with a new home.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LIMIT_S = 1500.0
USER = "anna"
NAME = "tandem-laptops"
STEPS: tuple[tuple[str, str, str], ...] = (
    ("no Python", "root", "! command -v python3"),
    (
        "a screen",
        "root",
        "command -v Xvfb >/dev/null || apt-get -qq install -y --no-install-recommends xvfb xauth",
    ),
    (
        "a new user",
        "root",
        f"userdel --remove {USER} 2>/dev/null; useradd --create-home --shell /bin/sh {USER}",
    ),
    ("install", "root", "apt-get -qq install -y /{package}"),
    (
        "in the menu",
        USER,
        "grep -q '^Exec=/usr/bin/tandem-gui %f$' /usr/share/applications/tandem.desktop"
        " && grep -q '^MimeType=text/x-python' /usr/share/applications/tandem.desktop"
        " && test -s /usr/share/icons/hicolor/128x128/apps/tandem.png",
    ),
    ("version", USER, "tandem --version"),
    (
        "window",
        USER,
        "Xvfb -displayfd 3 -screen 0 1280x800x24 3>screen >/dev/null 2>&1 & screen=$!;"
        " until [ -s screen ]; do kill -0 $screen || exit 1; sleep 0.1; done;"
        " export DISPLAY=:$(cat screen) LANG=C.UTF-8; began=$(date +%s%N);"
        " tandem-gui & window=$!; home=$HOME/.local/share/tandem;"
        " until [ -e $home/node.sock ] || [ -e $home/node.sock.path ]; do"
        " kill -0 $window || exit 1; sleep 0.05; done;"
        ' echo "reachable after $(( ($(date +%s%N) - began) / 1000000 )) ms";'
        " tandem devices --wait 0 && kill $window && wait $window; ended=$?; kill $screen; exit $ended",
    ),
    ("pair and train", USER, "tandem demo --epochs 8 --out $HOME/demo"),
    (
        "keep the home",
        USER,
        "tandem uninstall && test -d $HOME/.local/share/tandem",
    ),
    (
        "delete the home",
        USER,
        "tandem uninstall --delete-home && test ! -e $HOME/.local/share/tandem",
    ),
    ("uninstall", "root", f"apt-get -qq purge -y {NAME}"),
    (
        "nothing left",
        "root",
        f"test ! -e /usr/lib/{NAME} && test ! -e /usr/bin/tandem"
        " && test ! -e /usr/share/applications/tandem.desktop"
        f" && ! find /home/{USER} -name '*tandem*' | grep .",
    ),
)


def step(root: Path, user: str, words: str) -> subprocess.CompletedProcess[str]:
    """Runs in separate namespaces, so that nothing outlives it and no mount stays."""
    inside = [
        "mount --rbind /dev {root}/dev",
        "mount -t proc proc {root}/proc",
        "mount -t tmpfs tmpfs {root}/run",
        "ip link set lo up 2>/dev/null || true",
        'exec chroot {root} su - {user} -c "$WORDS"',
    ]
    script = "; ".join(inside).format(root=root, user=user)
    # Only apt keeps the network: the user's steps need none.
    network = ["--net"] if user != "root" else []
    return subprocess.run(
        ["unshare", "--mount", "--pid", "--fork", "--kill-child", *network, "sh", "-ec", script],
        env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "WORDS": words, "DEBIAN_FRONTEND": "noninteractive"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
    )


def main(arguments: list[str]) -> int:
    """Returns 0 if every step passed."""
    if not arguments or os.geteuid() != 0:
        print(f"{__doc__}")
        return 2
    root = Path(arguments[0]).resolve()
    found = sorted((ROOT / "dist").glob(f"{NAME}_*.deb"))
    package = Path(arguments[1]) if len(arguments) > 1 else found[-1] if found else None
    if package is None or not (root / "etc" / "debian_version").exists():
        print("There is no package, or no Debian in that folder. Make them: make dist, debootstrap.")
        return 2
    shutil.copyfile(package, root / package.name)
    failed = 0
    try:
        for name, user, words in STEPS:
            began_s = time.monotonic()
            try:
                done = step(root, user, words.replace("{package}", package.name))
                status, told = done.returncode, f"{done.stdout}\n{done.stderr}"
            except subprocess.TimeoutExpired as error:
                status, told = 124, f"it did not end in {LIMIT_S:.0f} s: {error.output!r}"
            last = [line for line in told.splitlines() if line.strip()][-1:]
            print(
                f"{name:<16}{time.monotonic() - began_s:6.1f} s  {last[0] if last else ''}"[:160], flush=True
            )
            if status:
                failed += 1
                print(f"FAILED ({status}):\n{told[-3000:]}", flush=True)
    finally:
        (root / package.name).unlink()
    print(f"{failed} of {len(STEPS)} steps failed" if failed else f"all {len(STEPS)} steps passed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
