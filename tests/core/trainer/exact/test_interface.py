import subprocess
import sys

import pytest

from core.trainer.exact.interface import Cluster, StopRequested


def test_a_rank_outside_the_shares_is_refused() -> None:
    with pytest.raises(ValueError, match="rank 2 is not one of 2 members"):
        Cluster(strategy=None, rank=2, shares=(1, 1), seed=0)


def test_a_stop_passes_a_script_that_catches_exceptions() -> None:
    assert not issubclass(StopRequested, Exception)


@pytest.mark.real
def test_the_interface_can_be_imported_without_tensorflow() -> None:
    code = (
        "import sys, core.trainer.exact.interface; sys.exit(bool({'tensorflow', 'keras'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
