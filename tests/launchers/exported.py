"""Jobs as ``tandem export`` writes them, in a separate process."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from tests.launchers.conftest import SEED, SHARES

ROOT = Path(__file__).parents[2]
PROGRAM = Path(sys.executable).with_name("tandem")
LIMIT_S = 60.0


def exported(launcher: str, project: Path, epochs: int) -> list[Path]:
    """Its files, the one that starts the job first."""
    words = [launcher, str(project), "--program", str(PROGRAM), "--seed", str(SEED), "--json"]
    words += ["--share", ",".join(map(str, SHARES)), "--", "--epochs", str(epochs)]
    done = subprocess.run(
        [str(PROGRAM), "export", *words],
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=True,
    )
    return [Path(path) for path in json.loads(done.stdout)["files"]]
