"""A wheel of a Tandem that only reports its versions: a real pip installs it instantly, without an index."""

from __future__ import annotations

import zipfile
from pathlib import Path

_START = """\
import sys
def main():
    if sys.argv[1] != "--version" and not loads:
        raise ImportError("cannot load it")
    python = ".".join(map(str, sys.version_info[:2]))
    print(f"Tandem 0.1.0 (Python {python}, TensorFlow 2.21.0, Keras 3.15.1)")
"""


def wheel(folder: Path, *, loads: bool = True) -> str:
    """Its address, as pip records it for an installed package. ``loads``: whether TensorFlow does."""
    path = folder / "tandem_laptops-0.1.0-py3-none-any.whl"
    info = "tandem_laptops-0.1.0.dist-info"
    files = {
        "tandem_laptops.py": f"loads = {loads}\n{_START}",
        f"{info}/METADATA": "Metadata-Version: 2.1\nName: tandem-laptops\nVersion: 0.1.0\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/entry_points.txt": "[console_scripts]\ntandem = tandem_laptops:main\n",
    }
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
        archive.writestr(f"{info}/RECORD", "".join(f"{name},,\n" for name in (*files, f"{info}/RECORD")))
    return path.as_uri()
