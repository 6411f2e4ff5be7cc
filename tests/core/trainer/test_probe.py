from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from core.vocabulary.versions import installed

pytestmark = pytest.mark.cluster


def test_the_probe_prints_versions_devices_and_time_as_json() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "core.trainer.probe"],
        cwd=Path(__file__).parents[3],
        capture_output=True,
        check=True,
        stdin=subprocess.DEVNULL,
    )
    tensorflow, keras, gpus, seconds = json.loads(done.stdout)
    assert (tensorflow, keras) == (installed().tensorflow, installed().keras)
    assert isinstance(gpus, list) and seconds > 0
