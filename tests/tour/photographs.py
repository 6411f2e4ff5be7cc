"""A folder of photographs as large as somebody's own, with the example that learns from them."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from tests.tour.person import ROOT

CLASSES = ("birds", "cats", "dogs", "trees")
PIXELS = "1200x900"
MADE_S = 60.0


def make(folder: Path, total_bytes: int) -> None:
    """No two files are alike: behind a picture's end, each has its number."""
    shutil.copytree(
        ROOT / "resources" / "examples" / "images", folder, ignore=shutil.ignore_patterns("photos")
    )
    pictures = []
    for seed, name in enumerate(CLASSES):
        (folder / "photos" / name).mkdir(parents=True)
        made = folder / "photos" / f"{name}.jpg"
        noise = ("-seed", str(seed), "-size", PIXELS, "plasma:fractal", "+noise", "Gaussian")
        subprocess.run(("convert", *noise, "-quality", "95", str(made)), check=True, timeout=MADE_S)
        pictures.append(made.read_bytes())
        made.unlink()
    written = number = 0
    while written < total_bytes:
        place = number % len(CLASSES)
        data = pictures[place] + number.to_bytes(8)
        (folder / "photos" / CLASSES[place] / f"{number:05}.jpg").write_bytes(data)
        written, number = written + len(data), number + 1
