"""The output of ``tandem export --ray``, run by real Ray: two nodes of one cluster on this machine."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.launchers import needs
from tests.launchers.conftest import EPOCHS, OFTEN
from tests.launchers.exported import exported

LIMIT_S = 900.0
CLUSTER = """\
import sys

from ray.cluster_utils import Cluster

node = {"num_cpus": 1, "object_store_memory": 80 << 20}
cluster = Cluster(initialize_head=True, head_node_args=node)
cluster.add_node(**node)
cluster.wait_for_nodes()
print("at", cluster.address, flush=True)
sys.stdin.read()
cluster.shutdown()
"""

pytestmark = [pytest.mark.launchers, pytest.mark.cluster, pytest.mark.timeout(3000)]


class Ray:
    """A cluster of two nodes, with room for one member each."""

    def __init__(self, python: Path) -> None:
        self._python = python
        self._environ = {**os.environ, **OFTEN, "RAY_USAGE_STATS_ENABLED": "0", "RAY_DEDUP_LOGS": "0"}
        self._environ.pop("RAY_ADDRESS", None)
        self._cluster = subprocess.Popen(
            [str(python), "-c", CLUSTER],
            env=self._environ,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._cluster.stdout is not None
        line = next((line for line in self._cluster.stdout if line.startswith("at ")), "")
        assert line, "Ray's cluster did not come up"
        self.address = line.split()[1]

    def close(self) -> None:
        self._cluster.communicate(timeout=LIMIT_S)

    def start(self, driver: Path) -> Driver:
        environ = {**self._environ, "RAY_ADDRESS": self.address}
        return Driver(
            subprocess.Popen(
                [str(self._python), str(driver)],
                env=environ,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )
        )


class Driver:
    """The exported driver, and its and its members' output."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.said = ""

    def until_said(self, words: str) -> None:
        assert self.process.stdout is not None
        limit = threading.Timer(LIMIT_S, self.process.kill)
        limit.start()
        try:
            for line in self.process.stdout:
                self.said += line
                if words in line:
                    return
        finally:
            limit.cancel()
        raise AssertionError(f"it did not say {words!r}:\n{self.said}")

    def ends(self) -> int:
        """Waits for its exit code."""
        try:
            self.said += self.process.communicate(timeout=LIMIT_S)[0]
        finally:
            self.process.kill()
        return self.process.returncode

    @property
    def weights(self) -> list[str]:
        """The members' digests."""
        return re.findall(r"Its weights: ([0-9a-f]{64})", self.said)


@pytest.fixture(scope="module")
def ray() -> Iterator[Ray]:
    ray = Ray(needs.ray())
    yield ray
    ray.close()


def test_two_actors_end_with_the_weights_of_two_laptops(ray: Ray, project: Path, two_laptops: str) -> None:
    files = exported("--ray", project, EPOCHS)
    driver = ray.start(files[0])
    assert driver.ends() == 0, driver.said
    assert driver.weights == [two_laptops, two_laptops], driver.said
    assert (files[0].parent / "trained" / "model.keras").is_file()


def test_a_driver_that_is_told_to_end_goes_on_when_it_is_started_again(
    ray: Ray, project: Path, two_laptops: str
) -> None:
    file = exported("--ray", project, EPOCHS)[0]
    first = ray.start(file)
    first.until_said(f"Epoch 2/{EPOCHS}")
    first.process.send_signal(signal.SIGTERM)
    assert first.ends() == 130, first.said
    assert f"Epoch {EPOCHS}/" not in first.said, "it was stopped before its end"
    again = ray.start(file)
    assert again.ends() == 0, again.said
    assert int(re.findall(rf"Epoch (\d+)/{EPOCHS}", again.said)[0]) > 1, "it did not begin anew"
    assert again.weights == [two_laptops, two_laptops], again.said
