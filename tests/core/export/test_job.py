"""A run as a job: how its members are started, and which runs cannot be one."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import PurePath

import pytest
from msgspec import structs

from core.export.job import Job, check, new_secret, of_run
from core.vocabulary.answers import RunDetails, RunEntry
from core.vocabulary.errors import TandemError
from core.vocabulary.phases import Finished
from core.vocabulary.plan import Plan, Role
from tests.core.cluster.laptops import ANNA, BEN, RUN, plan_of

JOB = Job(script=PurePath("/home/anna/digits/digits.py"), token="0a1b2c")


def details(plan: Plan | None, source: str = "/home/anna/train.py") -> RunDetails:
    entry = RunEntry(run=RUN, started_s=1.0, script="train.py", source=source, phase=Finished())
    return RunDetails(entry=entry, plan=plan)


def fixed(plan: Plan, *shares: int) -> Plan:
    members = tuple(
        structs.replace(each, share=share) for each, share in zip(plan.members, shares, strict=True)
    )
    return structs.replace(plan, balance=False, members=members)


def test_a_run_with_fixed_shares_is_the_same_job() -> None:
    plan = structs.replace(
        fixed(plan_of(), 48, 16), arguments=("--epochs", "2"), wire="bf16", sync="rare", seed=5
    )
    job = of_run(details(plan))
    assert (job.members, job.shares, job.seed, job.options) == (2, (48, 16), 5, plan.options)
    assert (job.script, job.arguments) == (PurePath("/home/anna/train.py"), ("--epochs", "2"))


def test_a_device_that_was_several_members_is_several_of_the_jobs() -> None:
    plan = fixed(plan_of(fixed={BEN: (Role.WORKER, Role.WORKER), ANNA: (Role.CHIEF,)}), 48, 16)
    assert (of_run(details(plan)).members, of_run(details(plan)).shares) == (3, (48, 8, 8))


def test_shares_that_followed_speeds_do_not_apply_to_a_cluster() -> None:
    plan = structs.replace(fixed(plan_of(), 48, 16), balance=True)
    assert of_run(details(plan)).shares == ()


def test_a_run_of_one_laptop_becomes_a_job_of_two_members() -> None:
    job = of_run(details(plan_of((ANNA,))))
    assert (job.members, job.shares) == (2, ())


@pytest.mark.parametrize(
    ("run", "code"),
    [
        (details(plan_of(), source=""), "run-of-another"),
        (details(None), "no-plan"),
        (details(plan_of(strategy="own")), "own-strategy"),
    ],
)
def test_runs_that_cannot_be_jobs_are_refused(run: RunDetails, code: str) -> None:
    with pytest.raises(TandemError) as failure:
        of_run(run)
    assert failure.value.code == code and failure.value.fix


@pytest.mark.parametrize(
    ("job", "words"),
    [
        (replace(JOB, members=1), "1 members"),
        (replace(JOB, shares=(48, 16, 1)), "--share 48,16,1"),
        (replace(JOB, shares=(0, 0)), "--share 0,0"),
        (replace(JOB, shares=(-1, 2)), "--share -1,2"),
        (replace(JOB, arguments=("a\nb",)), "characters"),
        (replace(JOB, script=PurePath("/home/a\n#SBATCH x/t.py")), "characters"),
    ],
)
def test_a_job_whose_members_cannot_be_started_is_refused(job: Job, words: str) -> None:
    check(JOB)
    with pytest.raises(TandemError) as failure:
        check(job)
    assert words in failure.value.what


@pytest.mark.parametrize(
    ("script", "name"),
    [
        ("digits.py", "digits-0a1b2c"),
        ("My Net (2).py", "my-net-2-0a1b2c"),
        ("2nd.py", "run-2nd-0a1b2c"),
        ("ü.py", "run-0a1b2c"),
        (f"{'long' * 30}.py", f"{'long' * 10}-0a1b2c"),
    ],
)
def test_a_job_has_a_name_that_is_valid_in_dns(script: str, name: str) -> None:
    job = replace(JOB, script=PurePath("/home/anna") / script)
    assert job.name == name
    host = f"{name}-1023"
    assert re.fullmatch(r"[a-z]([a-z0-9-]*[a-z0-9])?", host) and len(host) <= 63


def test_each_job_has_a_name_and_a_secret_of_its_own() -> None:
    assert Job(script=JOB.script).name != Job(script=JOB.script).name
    assert new_secret() != new_secret() and len(new_secret()) == 64
