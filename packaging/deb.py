"""Makes a Debian package of a frozen Tandem: ``python packaging/deb.py [dist/tandem]``. Linux.

The whole program goes into one folder; the desktop finds it by menu entry, icons, metainfo and the file types
that it opens. If AppArmor restricts user namespaces, the package installs the profile that allows them to the
program (``core.supervisor.seals``). It runs nothing else during installation or removal, and never touches
anybody's home.
"""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

NAME = "tandem-laptops"
PLACE = Path("usr/lib") / NAME
LIMIT_S = 3600.0
PROFILE = Path("usr/share") / NAME / "apparmor"
AFTER = f"""\
#!/bin/sh
set -e
# An AppArmor without this ABI does not restrict user namespaces, and could not read the profile.
if [ "$1" = configure ] && [ -e "$DPKG_ROOT/etc/apparmor.d/abi/4.0" ]; then
    install -m 644 "$DPKG_ROOT/{PROFILE}" "$DPKG_ROOT/etc/apparmor.d/{NAME}"
    if aa-enabled --quiet; then apparmor_parser -r "$DPKG_ROOT/etc/apparmor.d/{NAME}" || true; fi
fi
"""
BEFORE_REMOVAL = f"""\
#!/bin/sh
set -e
if [ "$1" = remove ] && [ -e "$DPKG_ROOT/etc/apparmor.d/{NAME}" ]; then
    if aa-enabled --quiet; then apparmor_parser -R "$DPKG_ROOT/etc/apparmor.d/{NAME}" || true; fi
    rm "$DPKG_ROOT/etc/apparmor.d/{NAME}"
fi
"""
READ = {"fontconfig-config", "xkb-data"}
"""Packages whose files the bundled libraries read: font locations, keyboard layouts."""
CONTROL = """\
Package: {name}
Version: {version}
Architecture: {architecture}
Maintainer: The Tandem developers <tandem@localhost>
Installed-Size: {size_kib}
Depends: {depends}
Recommends: fonts-dejavu-core
Section: science
Priority: optional
Description: train a Keras script on two laptops at once
 Open Tandem on each laptop: they find each other. Compare six digits on both
 screens to pair them, pick a Keras script, and press Train. The script, not
 one line changed, trains on both at once, with the result of one machine.
 .
 It brings its own Python, TensorFlow, Keras and Qt.
"""


def needed(folder: Path) -> set[str]:
    """Names of the libraries that its programs need and that it does not contain."""
    files = [path for path in folder.rglob("*") if path.is_file() and not path.is_symlink()]
    own = {path.name for path in folder.rglob("*.so*")}
    wanted: set[str] = set()
    for path in files:
        with path.open("rb") as file:
            if file.read(4) != b"\x7fELF":
                continue
        told = subprocess.run(["objdump", "-p", str(path)], capture_output=True, text=True, timeout=LIMIT_S)
        wanted |= {line.split()[1] for line in told.stdout.splitlines() if line.lstrip().startswith("NEEDED")}
    return wanted - own


def packages(libraries: Iterable[str]) -> dict[str, str]:
    """This system's packages that contain them; libraries in none (such as a card's driver) are left out."""
    found: dict[str, str] = {}
    for library in sorted(libraries):
        told = subprocess.run(
            ["dpkg-query", "-S", f"*/{library}"], capture_output=True, text=True, timeout=60
        )
        owners = {line.split(":")[0] for line in told.stdout.splitlines() if line.endswith(f"/{library}")}
        if owners:
            found[library] = min(owners, key=len)
    return found


def depends(libraries: Iterable[str]) -> str:
    """Includes a C library at least as new as this one, against which everything was built."""
    others = READ | {*packages(libraries).values()} - {"libc6", "libc6-dev"}
    return ", ".join([f"libc6 (>= {platform.libc_ver()[1]})", *sorted(others)])


def lay_out(folder: Path, stage: Path) -> None:
    """Writes all files of the package except Debian's own."""
    from app.system.desktop_files import write
    from core.supervisor.seals import profile

    (stage / PLACE).parent.mkdir(parents=True)
    # Hard links: a copy would take another gigabyte and a half.
    shutil.copytree(folder, stage / PLACE, copy_function=os.link, symlinks=True)
    (stage / "usr/bin").mkdir()
    for name in ("tandem", "tandem-gui"):
        (stage / "usr/bin" / name).symlink_to(f"../lib/{NAME}/tandem")
    write(stage / "usr/share", ["/usr/bin/tandem-gui"])
    (stage / PROFILE).parent.mkdir()
    (stage / PROFILE).write_text(profile(f"/{PLACE}/tandem"))
    about = stage / "usr/share/doc" / NAME
    about.mkdir(parents=True)
    shutil.copyfile(ROOT / "LICENSE", about / "copyright")


def control(folder: Path, version: str) -> str:
    size = sum(path.lstat().st_size for path in folder.rglob("*") if not path.is_symlink())
    architecture = subprocess.run(
        ["dpkg", "--print-architecture"], capture_output=True, text=True, timeout=60, check=True
    ).stdout.strip()
    return CONTROL.format(
        name=NAME,
        version=version,
        architecture=architecture,
        size_kib=size // 1024,
        depends=depends(needed(folder)),
    )


def build(folder: Path, into: Path) -> Path:
    """Builds the package and returns its file."""
    from core.vocabulary.versions import TANDEM

    text = control(folder, TANDEM)
    architecture = next(line.split()[1] for line in text.splitlines() if line.startswith("Architecture:"))
    file = into / f"{NAME}_{TANDEM}_{architecture}.deb"
    with tempfile.TemporaryDirectory(prefix=".deb-", dir=folder.parent) as place:  # for hard links
        stage = Path(place) / "root"
        stage.mkdir(mode=0o755)
        lay_out(folder, stage)
        (stage / "DEBIAN").mkdir()
        (stage / "DEBIAN" / "control").write_text(text)
        for script, content in (("postinst", AFTER), ("prerm", BEFORE_REMOVAL)):
            (stage / "DEBIAN" / script).write_text(content)
            (stage / "DEBIAN" / script).chmod(0o755)
        command = ["dpkg-deb", "--root-owner-group", "-Zzstd", "-z9", "--build", str(stage), str(file)]
        quiet = subprocess.DEVNULL
        subprocess.run(command, stdin=quiet, stdout=quiet, timeout=LIMIT_S, check=True)
    return file


def main(arguments: list[str]) -> int:
    folder = Path(arguments[0] if arguments else ROOT / "dist" / "tandem").resolve()
    if not (folder / "tandem").is_file():
        print(f"There is no frozen program in {folder}. Make one: make dist")
        return 2
    missing = [tool for tool in ("dpkg-deb", "dpkg-query", "objdump") if shutil.which(tool) is None]
    if missing:
        print(f"A Debian package cannot be made here: {', '.join(missing)} missing.")
        return 2
    os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
    file = build(folder, folder.parent)
    print(f"{'package':<12}{file.name}, {file.stat().st_size / 1e6:.0f} MB")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
