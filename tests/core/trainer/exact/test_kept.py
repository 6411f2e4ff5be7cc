"""A training stopped within an epoch and resumed ends like one that never stopped."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from core.project import checkpoint_store
from tests.exactness import processes

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(900)]
MODULE = "tests.core.trainer.exact.kept_member"
TOLD = ("between", "histories", "epochs", "losses", "best", "rate", "iterations", "step")

UNAUDITED_BEFORE = (
    "Some of the steps before the training was resumed were not audited: the result may differ from that of "
    "one laptop."
)

Job = tuple[str, str, str, str]
"""Its name, kind, model, and the checkpoint it resumes from."""


def run(out: Path, shares: tuple[int, ...], *jobs: Job) -> list[Path]:
    """The members' folders; each contains a folder for every job."""
    return processes.run(shares, [json.dumps(job) for job in jobs], out, processes.LIMIT_S, MODULE)


def kept(folder: Path, job: str) -> str:
    found = checkpoint_store.newest(folder / job / "kept")
    assert found is not None
    return found.folder


def record(folder: Path, job: str) -> dict[str, Any]:
    return dict(json.loads((folder / "record.json").read_text())[job])


def weights(folder: Path, job: str) -> list[np.ndarray]:
    return list(np.load(folder / job / "weights.npz").values())


def assert_same(one: list[np.ndarray], other: list[np.ndarray]) -> None:
    assert len(one) == len(other)
    assert all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))


@pytest.fixture(scope="module")
def before(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Two members: trained to the end, with many checkpoints, and stopped."""
    out = tmp_path_factory.mktemp("before")
    return run(
        out,
        (48, 16),
        ("whole", "whole", "noisy", ""),
        ("crowded", "crowded", "noisy", ""),
        ("stopped", "stopped", "noisy", ""),
        ("validating", "validating", "noisy", ""),
        ("evaluating", "evaluating", "noisy", ""),
        ("doubted", "doubted", "late", ""),
        ("differing", "differing", "late", ""),
        ("unaware", "unaware", "late", ""),
        ("drawing", "whole", "drawing", ""),
        ("drawing-stopped", "stopped", "drawing", ""),
    )


@pytest.fixture(scope="module")
def after(before: list[Path], tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """New processes, all with the checkpoint of the member that was not the chief."""
    out = tmp_path_factory.mktemp("after")
    return run(
        out,
        (48, 16),
        ("resumed", "resumed", "noisy", kept(before[1], "stopped")),
        ("crowded", "resumed", "noisy", kept(before[0], "crowded")),
        ("validated", "resumed", "noisy", kept(before[0], "validating")),
        ("evaluated", "resumed", "noisy", kept(before[0], "evaluating")),
        ("gone-back", "resumed", "late", kept(before[1], "doubted")),
        ("differs", "resumed", "late", kept(before[1], "differing")),
        ("aware", "resumed", "late", kept(before[1], "unaware")),
        ("drawn", "resumed", "drawing", kept(before[1], "drawing-stopped")),
    )


@pytest.fixture(scope="module")
def alone(before: list[Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One process that stops, then continues the members' training."""
    out = tmp_path_factory.mktemp("alone")
    return run(
        out,
        (1,),
        ("whole", "whole", "noisy", ""),
        ("stopped", "stopped", "noisy", ""),
        ("members", "resumed", "noisy", kept(before[0], "stopped")),
        ("late", "whole", "late", ""),
    )[0]


def test_a_training_stopped_in_mid_epoch_ends_with_the_same_bits(
    before: list[Path], after: list[Path]
) -> None:
    assert record(before[0], "stopped")["stopped"]
    moment = checkpoint_store.at(Path(kept(before[1], "stopped"))).head.moment  # type: ignore[union-attr]
    both = [checkpoint_store.newest(member / "stopped" / "kept") for member in before]
    assert len({checkpoint_store.listing(each).digest for each in both if each is not None}) == 1
    assert (moment.fit, moment.epoch) == (1, 2) and 7 < moment.batch < 20
    for then, now in zip(before, after, strict=True):
        assert_same(weights(then, "whole"), weights(now, "resumed"))


def test_histories_and_callbacks_go_on_too(before: list[Path], after: list[Path]) -> None:
    for then, now in zip(before, after, strict=True):
        whole, resumed = record(then, "whole"), record(now, "resumed")
        for told in TOLD:
            assert resumed[told] == whole[told], told


def test_a_log_continues_where_it_was(before: list[Path], after: list[Path]) -> None:
    assert record(after[0], "resumed")["csv"] == record(before[0], "whole")["csv"]


def test_checkpoints_change_nothing_and_each_is_good(before: list[Path], after: list[Path]) -> None:
    most = checkpoint_store.KEPT + 1  # the last one that an audit confirmed
    assert len(list((before[0] / "crowded" / "kept").iterdir())) in (checkpoint_store.KEPT, most)
    for then, now in zip(before, after, strict=True):
        assert_same(weights(then, "whole"), weights(then, "crowded"))
        assert_same(weights(then, "whole"), weights(now, "crowded"))


def test_a_stop_in_a_validation_loses_nothing_of_its_epoch(before: list[Path], after: list[Path]) -> None:
    assert record(before[0], "validating")["stopped"]
    moment = checkpoint_store.at(Path(kept(before[0], "validating"))).head.moment  # type: ignore[union-attr]
    assert (moment.fit, moment.epoch, moment.batch) == (1, 2, 20)
    for then, now in zip(before, after, strict=True):
        assert_same(weights(then, "whole"), weights(now, "validated"))
        assert record(now, "validated")["histories"] == record(then, "whole")["histories"]


def test_a_stop_after_a_fit_loses_nothing_of_it(before: list[Path], after: list[Path]) -> None:
    """However short the time was, and even right after the previous checkpoint."""
    assert record(before[0], "evaluating")["stopped"]
    moment = checkpoint_store.at(Path(kept(before[0], "evaluating"))).head.moment  # type: ignore[union-attr]
    assert (moment.fit, moment.epoch, moment.batch) == (1, 0, 0) and moment.step > 0
    for then, now in zip(before, after, strict=True):
        assert_same(weights(then, "whole"), weights(now, "evaluated"))
        assert record(now, "evaluated")["histories"] == record(then, "whole")["histories"]


def test_generators_of_the_scripts_own_go_on_where_they_were(before: list[Path], after: list[Path]) -> None:
    """Those that draw data are brought there by reading it again, the others by the checkpoint."""
    assert record(before[0], "drawing-stopped")["stopped"]
    for then, now in zip(before, after, strict=True):
        assert len(record(then, "drawing")["drawn"]) > 4 * 2
        for told in (*TOLD, "drawn"):
            assert record(now, "drawn")[told] == record(then, "drawing")[told], told
        assert_same(weights(then, "drawing"), weights(now, "drawn"))
        assert not [words for words in record(now, "drawn")["said"] if "generator" in words]


def test_what_checkpoints_leave_out_is_reported(before: list[Path]) -> None:
    said = record(before[0], "whole")["said"] + record(before[0], "crowded")["said"]
    assert any("Ask.what" in words for words in said)


def test_another_number_of_members_goes_on_with_equal_results_up_to_rounding(
    before: list[Path], alone: Path
) -> None:
    assert record(alone, "members")["epochs"] == record(before[0], "whole")["epochs"]
    for one, other in zip(weights(before[0], "whole"), weights(alone, "members"), strict=True):
        assert np.abs(one - other).max() < 4e-6


def test_one_process_alone_goes_on_as_well(alone: Path, tmp_path: Path) -> None:
    assert record(alone, "stopped")["stopped"]
    again = run(tmp_path, (1,), ("resumed", "resumed", "noisy", kept(alone, "stopped")))[0]
    assert_same(weights(alone, "whole"), weights(again, "resumed"))
    for told in TOLD:
        assert record(again, "resumed")[told] == record(alone, "whole")[told], told


def test_a_training_in_doubt_goes_back_to_what_an_audit_confirmed(
    before: list[Path], after: list[Path], alone: Path
) -> None:
    """Callbacks saw every batch. The 32nd step was confirmed, and the 40th is not what one process does."""
    for then, now in zip(before, after, strict=True):
        assert record(then, "doubted")["went_back"].startswith("The training goes back to step 32, since")
        assert "and repeats 8 steps." in record(then, "doubted")["went_back"]
        head = checkpoint_store.at(Path(kept(then, "doubted"))).head  # type: ignore[union-attr]
        assert (head.moment.step, head.moment.batch, head.whole) == (32, 12, True)
        said = record(now, "gone-back")["said"]
        (whole,) = (words for words in said if "Every laptop computes each batch whole" in words)
        assert whole.endswith(UNAUDITED_BEFORE) and record(now, "gone-back")["differs"] == [whole]
        assert record(now, "gone-back")["epochs"] == record(alone, "late")["epochs"]
    assert_same(weights(after[0], "gone-back"), weights(after[1], "gone-back"))
    for one, other in zip(weights(after[0], "gone-back"), weights(alone, "late"), strict=True):
        assert np.abs(one - other).max() < 4e-6


def test_a_resumed_training_still_says_that_its_result_may_differ(
    before: list[Path], after: list[Path]
) -> None:
    for then, now in zip(before, after, strict=True):
        assert record(then, "differing")["stopped"]
        (found,) = record(then, "differing")["differs"]
        assert "Steps 33 to 39 were not audited: the result may differ" in found
        assert record(now, "differs")["differs"] == [found]


def test_a_fault_that_a_resumed_training_finds_may_have_been_in_steps_that_were_not_audited(
    before: list[Path], after: list[Path]
) -> None:
    """It began in the 36th step. The 40th, in which an audit would have found it, comes after the Stop."""
    for then, now in zip(before, after, strict=True):
        assert record(then, "unaware")["stopped"] and not record(then, "unaware")["differs"]
        assert 36 < record(then, "unaware")["step"] < 40
        (found,) = record(now, "aware")["differs"]
        assert found.startswith("The loss")
        assert found.endswith(f"is of the batch as a whole, not a mean over its rows. {UNAUDITED_BEFORE}")


def test_audits_are_counted_over_all_runs_of_a_training(
    before: list[Path], after: list[Path], alone: Path
) -> None:
    steps, audited = record(after[0], "resumed")["audits"]
    stopped_at, audited_then = record(before[0], "stopped")["audits"]
    assert steps == record(before[0], "whole")["audits"][0] > stopped_at
    assert audited > audited_then > 0
    assert record(alone, "members")["audits"] == [stopped_at, audited_then], "one process shares nothing"
