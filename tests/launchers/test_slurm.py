"""The output of ``tandem export --slurm``, run by real Slurm."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.lab.network import RATE, Network
from tests.launchers import needs
from tests.launchers.conftest import EPOCHS, OFTEN
from tests.launchers.exported import exported
from tests.launchers.slurm import Slurm

LIMIT_S = 900.0

pytestmark = [pytest.mark.launchers, pytest.mark.cluster, pytest.mark.timeout(3000)]


@pytest.fixture
def slurm(namespaces: None, tmp_path: Path) -> Iterator[Slurm]:
    needs.slurm()
    place = tmp_path / "slurm"
    place.mkdir(mode=0o711)
    with Network(2, RATE) as network, Slurm(place, network) as slurm:
        yield slurm


def ends_of(said: str) -> dict[str, list[str]]:
    """Each member's digests, by its rank."""
    found: dict[str, list[str]] = {}
    for rank, digest in re.findall(r"^(\d+): Its weights: ([0-9a-f]{64})$", said, re.M):
        found.setdefault(rank, []).append(digest)
    return found


def test_two_nodes_end_with_the_weights_of_two_laptops(slurm: Slurm, project: Path, two_laptops: str) -> None:
    files = exported("--slurm", project, EPOCHS)
    job = slurm.submit(files[0])
    assert job.ends(LIMIT_S) == 0, job.said
    assert ends_of(job.said) == {"0": [two_laptops], "1": [two_laptops]}, job.said
    assert re.search(r"^0: Member 0 of 2, at n0:\d+\.$", job.said, re.M)
    assert (project / "digits.keras").is_file(), "what the first member writes stays"
    assert (files[0].parent / "trained" / "model.keras").is_file()
    assert not list((files[0].parent / "kept").rglob("*.bin")), "nothing is left to go on from"


def test_a_job_that_is_requeued_goes_on_in_its_middle(slurm: Slurm, project: Path, two_laptops: str) -> None:
    job = slurm.submit(exported("--slurm", project, EPOCHS)[0], **OFTEN)
    job.until_said(f"Epoch 2/{EPOCHS}", LIMIT_S)
    slurm.do("scontrol", "requeue", job.number)
    assert job.ends(LIMIT_S) == 0, job.said
    before, again, after = job.said.rpartition("Member 0 of 2")
    assert again and "Member 0 of 2" in before, "it was started twice"
    assert f"Epoch {EPOCHS}/" not in before, "it was requeued before its end"
    began = int(re.findall(rf"Epoch (\d+)/{EPOCHS}", after)[0])
    assert began > 1, "it went on, and did not begin anew"
    assert set(map(tuple, ends_of(after).values())) == {(two_laptops,)}, job.said
