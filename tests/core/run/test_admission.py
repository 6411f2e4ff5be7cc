"""Which parts of a peer's request are believed."""

from __future__ import annotations

import math
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from msgspec import structs

from core.cluster.make_plan import MOST_PATIENT_S
from core.home.trust_file import SavedTrust
from core.project import copy
from core.project.store import ProjectStore
from core.run import problems
from core.run.admission import Admission, UsedRunIds, why_unfit, why_unsafe
from core.run.context import RunContext
from core.run.participant import state as pa
from core.vocabulary.data import Data
from core.vocabulary.ids import ProjectId, RunId, SweepId
from core.vocabulary.manifest import Listing, ProjectFile, manifest_of
from core.vocabulary.peer_messages import Prepare
from core.vocabulary.plan import Plan, Role, StrategyKind, TrialOf
from tests.core.cluster.laptops import ANNA, BEN, CLEO, plan_of
from tests.core.project.making import write
from tests.core.run.world import MANIFEST
from tests.core.samples import sample

PLAN = plan_of(project=MANIFEST.digest)


def placed(**fields: Any) -> Plan:
    """With another address for the chief's task."""
    return structs.replace(PLAN, tasks=(structs.replace(PLAN.tasks[0], **fields), *PLAN.tasks[1:]))


@pytest.mark.parametrize(
    "plan",
    [
        structs.replace(PLAN, starter=CLEO),
        structs.replace(PLAN, script="other.py"),
        plan_of((ANNA, CLEO), project=MANIFEST.digest),
        structs.replace(PLAN, members=PLAN.members[1:]),
        structs.replace(PLAN, tasks=(), members=()),
        structs.replace(
            plan_of(fixed={BEN: (Role.PS,)}, strategy="own", project=MANIFEST.digest), exchange="tls"
        ),
        structs.replace(PLAN, away_s=MOST_PATIENT_S + 1),
        structs.replace(PLAN, away_s=0.0),
        structs.replace(PLAN, away_s=math.nan),
        structs.replace(PLAN, ask_after_s=MOST_PATIENT_S + 1),
        structs.replace(PLAN, ask_after_s=-1.0),
        structs.replace(
            PLAN, trial=TrialOf(sweep=SweepId("s"), number=1, trials=1, argument_sets=(("--not", "these"),))
        ),
        placed(host="10.0.0.1\x00"),
        placed(host='10.0.0.1"]}'),
        placed(host="a" * 300),
        placed(port=2**16),
        placed(index=-1),
        placed(index=10**12),
    ],
)
def test_an_inconsistent_request_is_refused(plan: Plan) -> None:
    problem = why_unfit(BEN, ANNA, Prepare(plan=plan, manifest=MANIFEST))
    assert problem is not None
    assert problem.code == "broken-talk"


@pytest.mark.parametrize(
    "run", ["", ".", "..", "/home/ben", "a/b", "a\\b", "history.db", "x" * 41, "r\n", "ö"]
)
def test_a_run_id_that_is_not_a_plain_name_is_refused(run: str) -> None:
    assert (
        why_unfit(BEN, ANNA, Prepare(plan=structs.replace(PLAN, run=RunId(run)), manifest=MANIFEST))
        is not None
    )


def test_files_other_than_announced_are_refused() -> None:
    assert (
        why_unsafe(Prepare(plan=structs.replace(PLAN, project=ProjectId("e" * 64)), manifest=MANIFEST))
        is not None
    )


def test_a_request_with_an_escaping_path_is_refused() -> None:
    bad = manifest_of("train.py", [*MANIFEST.files, ProjectFile(path="../up.py", size=1, sha256="a" * 64)])
    problem = why_unsafe(Prepare(plan=plan_of(project=bad.digest), manifest=bad))
    assert problem is not None
    assert problem.code == "project-refused"


def test_a_plan_of_an_exchange_that_a_newer_tandem_has_is_refused_by_name() -> None:
    problem = why_unfit(BEN, ANNA, Prepare(plan=structs.replace(PLAN, exchange="quic"), manifest=MANIFEST))
    assert problem is not None
    assert problem.code == "exchange-unknown"
    assert "'quic'" in problem.what and "Update Tandem" in problem.fix


@pytest.mark.parametrize("strategy", ["managed", "own"])
def test_a_shared_run_by_tensorflows_collectives_is_refused_by_name(strategy: StrategyKind) -> None:
    """From an older version, or from somebody who wants TensorFlow's port open."""
    plan = structs.replace(plan_of(strategy=strategy, project=MANIFEST.digest), exchange="tensorflow")
    problem = why_unfit(BEN, ANNA, Prepare(plan=plan, manifest=MANIFEST))
    assert problem is not None
    assert problem.code == "exchange-tensorflow" and "Update Tandem" in problem.fix
    alone = plan_of((BEN,), starter=ANNA, project=MANIFEST.digest)
    assert (
        alone.exchange == "tensorflow"
        and why_unfit(BEN, ANNA, Prepare(plan=alone, manifest=MANIFEST)) is None
    )


def test_a_good_request_is_accepted() -> None:
    assert why_unfit(BEN, ANNA, Prepare(plan=PLAN, manifest=MANIFEST)) is None
    assert why_unsafe(Prepare(plan=PLAN, manifest=MANIFEST)) is None


def test_each_run_id_is_accepted_once_and_memory_is_bounded() -> None:
    heard = UsedRunIds(most=2)
    assert [heard.claim(RunId(run)) is None for run in ("a", "a", "b", "a", "c", "b", "a")] == [
        True,
        False,
        True,
        False,
        True,
        False,
        True,
    ]


def test_a_repeated_request_gets_the_first_refusal_again() -> None:
    heard, run, no = UsedRunIds(), RunId("a"), problems.refused_by_user()
    assert heard.claim(run) is None
    again = heard.claim(run)
    assert again is not None and again.code == "run-known"
    heard.refuse(run, no)
    assert heard.claim(run) == no
    heard.refuse(RunId("b"), no)
    assert heard.claim(RunId("b")) is None, "what never came was not refused"


@pytest.mark.parametrize(
    ("name", "size"), [("../now.bin", 1), ("train.py", 1), ("now.bin", -1), ("now.bin", 1 << 62)]
)
def test_an_invalid_checkpoint_is_refused_before_anybody_is_asked(name: str, size: int) -> None:
    files = [ProjectFile(path=name, size=size, sha256="a" * 64)]
    files.append(ProjectFile(path="manifest.json", size=9, sha256="a" * 64))
    assert why_unsafe(Prepare(plan=PLAN, manifest=MANIFEST, checkpoint=manifest_of("", files))) is not None


@pytest.mark.parametrize("free", [1_000, 999])
def test_data_that_has_partly_come_needs_room_for_the_rest_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, free: int
) -> None:
    store, digest = ProjectStore(tmp_path / "projects"), ProjectId("d" * 64)
    write(tmp_path / "projects" / "incoming" / digest, {"0.part": bytes(4_000)})
    photos = structs.replace(
        sample(Data), name="photos", listing=Listing(digest=digest, size=1), files=1, total_bytes=5_000
    )
    plan = structs.replace(PLAN, data=(photos,))
    context = SimpleNamespace(
        me=CLEO, store=store, folder=tmp_path.joinpath, folders=dict, lacking_data=lambda plan: plan.data
    )
    request = Prepare(plan=plan, manifest=MANIFEST)
    asking = SimpleNamespace(plan=plan, manifest=MANIFEST, request=request)
    room = SimpleNamespace(free=copy.SPARE_BYTES + MANIFEST.total_bytes + free)
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: room)
    problem = Admission(cast("RunContext", context), cast("SavedTrust", None))._why_not(
        cast("pa.Participation", asking)
    )
    assert (problem is None) == (free == 1_000)
