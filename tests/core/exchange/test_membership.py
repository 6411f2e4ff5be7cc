"""The launchers' descriptions of a run's members, and impossible ones."""

import json
from typing import Any

import pytest

from core.exchange import membership
from core.exchange.membership import Membership
from core.vocabulary.errors import TandemError

CHIEF = {"chief": ["a:1111"], "worker": ["b:2222", "[fd00::1]:3333"]}
ALIKE = {"worker": ["a:1111", "b:2222"]}
SLURM = {
    "SLURM_JOB_ID": "1001",
    "SLURM_PROCID": "2",
    "SLURM_NTASKS": "3",
    "SLURM_JOB_NODELIST": "gpu[01-02]",
    "SLURM_TASKS_PER_NODE": "2,1",
}
JOB = {"JOB_COMPLETION_INDEX": "1", "TANDEM_MEMBERS": "2", "TANDEM_HOST": "digits-{index}.digits:21000"}


def config(cluster: Any, kind: str, index: int) -> str:
    return json.dumps({"cluster": cluster, "task": {"type": kind, "index": index}})


@pytest.mark.parametrize(
    ("environ", "rank", "addresses"),
    [
        ({"TF_CONFIG": config(CHIEF, "chief", 0)}, 0, ("a:1111", "b:2222", "[fd00::1]:3333")),
        ({"TF_CONFIG": config(CHIEF, "worker", 1)}, 2, ("a:1111", "b:2222", "[fd00::1]:3333")),
        ({"TF_CONFIG": config(ALIKE, "worker", 0)}, 0, ("a:1111", "b:2222")),
        ({"TF_CONFIG": config(ALIKE, "worker", 1), "SLURM_PROCID": "0"}, 1, ("a:1111", "b:2222")),
        (
            {"CLUSTER_SPEC": config({"workerpool0": ["a:1"], "workerpool1": ["b:2"]}, "workerpool1", 0)},
            1,
            ("a:1", "b:2"),
        ),
        (SLURM, 2, ("gpu01:24016", "gpu01:24017", "gpu02:24016")),
        (JOB, 1, ("digits-0.digits:21000", "digits-1.digits:21000")),
        ({**JOB, "TANDEM_HOST": "d-{index}"}, 1, ("d-0:20000", "d-1:20000")),
    ],
)
def test_each_launcher_is_understood(environ: dict[str, str], rank: int, addresses: tuple[str, ...]) -> None:
    found = membership.read({"HOME": "/home/a", **environ})
    assert (found.rank, found.addresses) == (rank, addresses)


@pytest.mark.parametrize(
    ("environ", "why"),
    [
        ({}, "No launcher says which member"),
        ({"TF_CONFIG": "{"}, "cannot be understood"),
        ({"TF_CONFIG": "[]"}, "cannot be understood"),
        ({"TF_CONFIG": config(CHIEF, "worker", 7)}, "cannot be understood"),
        ({"TF_CONFIG": config({"worker": [5]}, "worker", 0)}, "cannot be understood"),
        ({"TF_CONFIG": config({"worker": ["a:1", "a:1"]}, "worker", 0)}, "the same address"),
        ({"TF_CONFIG": config({**CHIEF, "ps": ["c:1"]}, "chief", 0)}, "it has a ps"),
        ({**SLURM, "SLURM_NTASKS": "5"}, "it counts 5 tasks, but 3"),
        ({**SLURM, "SLURM_PROCID": "3"}, "member 3 of 3"),
        ({**SLURM, "SLURM_JOB_NODELIST": "n[1-99999999]"}, "more than 1024"),
        ({**SLURM, "SLURM_TASKS_PER_NODE": "2(x"}, "cannot be understood"),
        ({**JOB, "TANDEM_HOST": "digits"}, "must contain {index}"),
        ({**JOB, "TANDEM_MEMBERS": "1"}, "member 1 of 1"),
        ({"JOB_COMPLETION_INDEX": "0"}, "are needed"),
    ],
)
def test_impossible_memberships_are_reported(environ: dict[str, str], why: str) -> None:
    with pytest.raises(TandemError) as failure:
        membership.read(environ)
    assert why in failure.value.what and failure.value.fix


def test_slurms_lists_are_written_out() -> None:
    assert membership.hosts("gpu[01-03,7],login") == ["gpu01", "gpu02", "gpu03", "gpu7", "login"]
    assert membership.hosts("a[1-2]b[3-4]") == ["a1b3", "a1b4", "a2b3", "a2b4"]
    assert membership.hosts("n[9-11]-ib") == ["n9-ib", "n10-ib", "n11-ib"]
    assert membership.tasks("2(x3),1") == [2, 2, 2, 1]


def test_a_requeued_job_is_another_run_of_the_same_members() -> None:
    first, again = membership.read(SLURM), membership.read({**SLURM, "SLURM_RESTART_COUNT": "1"})
    assert first.run != again.run and first.addresses == again.addresses


def test_members_on_one_host_know_of_each_other() -> None:
    assert membership.read(SLURM).beside == (2,)
    assert membership.read({**SLURM, "SLURM_PROCID": "0"}).beside == (0, 1)


def test_the_first_is_the_chief_and_one_alone_needs_no_cluster() -> None:
    two = membership.read({"TF_CONFIG": config(ALIKE, "worker", 1)})
    assert json.loads(two.tf_config) == {
        "cluster": {"chief": ["a:1111"], "worker": ["b:2222"]},
        "task": {"type": "worker", "index": 0},
    }
    assert (two.name(0), two.name(1)) == ("chief:0", "worker:0")
    assert Membership("r", 0, ("a:1",)).tf_config == ""
