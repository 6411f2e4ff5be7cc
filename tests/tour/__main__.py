"""``make gui-tour``: two real windows on two virtual laptops, driven by mouse and keyboard alone.

    python -m tests.tour [PART]

Leaves a picture of every screen and state in ``build/gui-tour``. Ends after a part that is named: *pair*.
"""

from __future__ import annotations

import signal
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

from tests.lab.lab import Lab
from tests.lab.network import WIFI, why_none
from tests.tour.album import Album
from tests.tour.laptop import Laptop
from tests.tour.person import Lost
from tests.tour.programs import missing_packages
from tests.tour.screen import NoScreen
from tests.tour.story import STORY

PICTURES = Path(__file__).parents[2] / "build" / "gui-tour"
CANNOT = 2


def main(last: str = "") -> int:
    # Windows and screens have their own sessions: ending the tour must end them, too.
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    if packages := missing_packages():
        print(f"The tour needs more of the system: apt-get install {' '.join(packages)}", file=sys.stderr)
        return CANNOT
    if why := why_none():
        print(f"The tour needs two laptops in network namespaces: {why}", file=sys.stderr)
        return CANNOT
    began_s = time.monotonic()
    album = Album(PICTURES)
    with ExitStack() as ends:
        folder = Path(ends.enter_context(tempfile.TemporaryDirectory(prefix="tandem-tour-")))
        lab = ends.enter_context(Lab(folder, hosts=2, rate=WIFI))
        anna, ben = (ends.enter_context(Laptop(lab, host, album)) for host in range(2))
        for part in STORY:
            print(f"{time.monotonic() - began_s:6.1f} s  {part.__name__.replace('_', ' ')}", flush=True)
            try:
                part(anna, ben)
            except (Lost, NoScreen, AssertionError) as error:
                print(f"The tour ended here: {error}", file=sys.stderr)
                return 1
            if part.__name__ == last:
                break
        print(f"{time.monotonic() - began_s:6.1f} s  the film: {album.film.make()}", flush=True)
    print(f"{time.monotonic() - began_s:6.1f} s  Everything was there. The pictures: {PICTURES}")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:2]))
