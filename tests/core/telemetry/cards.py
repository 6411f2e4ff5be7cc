"""A sysfs with graphics cards, laid out like Linux's."""

from __future__ import annotations

from pathlib import Path


def add_card(root: Path, number: int, vendor: int, model: int, **files: object) -> Path:
    """``files``: names under the device's folder, ``__`` for a slash. Returns that folder."""
    device = root / f"card{number}" / "device"
    device.mkdir(parents=True)
    (root / f"card{number}-HDMI-A-1").mkdir()
    (device / "vendor").write_text(f"0x{vendor:04x}\n")
    (device / "device").write_text(f"0x{model:04x}\n")
    for name, value in files.items():
        path = device / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{value}\n")
    return device
