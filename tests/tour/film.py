"""The README's material from a tour: both screens side by side, as pictures and as a short film.

They are in ``build/gui-tour/readme``; those of ``docs/images`` are copies from a good tour.
"""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tests.tour.screen import Screen

WIDTH = 1400
"""Width of both screens together in the film, in pixels."""
COLOURS = 64
MOST_BYTES = 1_500_000
"""Maximum size of the film: a README is read on a phone, too."""
BORDER = ("-bordercolor", "#c9cfda", "-border", "1")
MADE_S = 180.0


class Film:
    """``folder`` gets the results; an earlier tour's are overwritten."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self._frames = tempfile.TemporaryDirectory(prefix="tandem-film-")
        self._held: list[tuple[Path, int]] = []

    def take(self, screens: Sequence[Screen], hold_s: float) -> None:
        """One frame of all screens, shown for that long."""
        shots = []
        for place, screen in enumerate(screens):
            shots.append(Path(self._frames.name) / f"{len(self._held):03}-{place}.png")
            screen.picture(shots[-1])
        frame = shots[0].with_name(f"{len(self._held):03}.png")
        _beside(shots, frame)
        self._held.append((frame, round(100 * hold_s)))

    def keep(self, name: str, screens: Sequence[Screen]) -> None:
        """Saves a picture of these screens as ``name``."""
        shots = [Path(self._frames.name) / f"{name}-{place}.png" for place in range(len(screens))]
        for shot, screen in zip(shots, screens, strict=True):
            screen.picture(shot)
        _beside(shots, self.folder / f"{name}.png")

    def make(self) -> Path:
        """The film of the frames so far, looping."""
        made = self.folder / "pairing-and-training.gif"
        frames = [word for frame, hold in self._held for word in ("-delay", str(hold), str(frame))]
        look = ("-resize", f"{WIDTH}x", "+dither", "-colors", str(COLOURS), "-layers", "optimize")
        _convert("-loop", "0", *frames, *look, str(made))
        assert made.stat().st_size < MOST_BYTES, f"{made} has {made.stat().st_size:,} bytes"
        return made


def _beside(shots: Sequence[Path], made: Path) -> None:
    few = ("-strip", "-define", "png:compression-level=9")
    _convert(*(str(shot) for shot in shots), *BORDER, "+append", *few, str(made))


def _convert(*words: str) -> None:
    subprocess.run(("convert", *words), check=True, timeout=MADE_S)
