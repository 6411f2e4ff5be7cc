from pathlib import Path

from core.sweep import kept
from core.vocabulary.ids import ProjectId, SweepId
from core.vocabulary.manifest import Manifest
from core.vocabulary.plan import RunSpec
from core.vocabulary.sweep import Sweep, SweepSpec, Trial

SPEC = SweepSpec(run=RunSpec(script="train.py"), argument_sets=((),))


def sweep(name: str) -> Sweep:
    trials = (Trial(number=1, seed=1),)
    return Sweep(
        sweep=SweepId(name), spec=SPEC, script="train.py", project=ProjectId("c" * 64), trials=trials
    )


def test_the_newest_sweep_is_found_and_others_by_the_beginning_of_their_id(tmp_path: Path) -> None:
    assert kept.find(tmp_path, "") is None
    older, newer = sweep("20261121-191204-9f3a01bc"), sweep("20261122-191204-9f3a01bc")
    for each in (older, newer):
        kept.write(tmp_path, each)
    kept.write_project(tmp_path, newer.sweep, Manifest(script="train.py", files=()))
    assert kept.find(tmp_path, "") == newer
    assert kept.find(tmp_path, "20261121") == older
    assert kept.project_of(tmp_path, newer.sweep) == Manifest(script="train.py", files=())
    assert kept.project_of(tmp_path, older.sweep) is None


def test_a_damaged_sweep_is_passed_over(tmp_path: Path) -> None:
    kept.write(tmp_path, sweep("1"))
    kept.write(tmp_path, sweep("2"))
    (tmp_path / "2" / kept.SWEEP).write_text("{")
    assert kept.find(tmp_path, "") == sweep("1")


def test_a_runs_models_and_checkpoints_are_deleted_and_its_record_stays(tmp_path: Path) -> None:
    stay = [tmp_path / "summary.json", tmp_path / "outputs" / "predictions.csv"]
    go = [
        tmp_path / "outputs" / "trained" / "model.keras",
        tmp_path / "outputs" / "digits.keras",
        tmp_path / "checkpoints" / "1" / "weights",
    ]
    for path in (*stay, *go):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x")
    kept.delete_models(tmp_path)
    assert all(path.exists() for path in stay)
    assert not any(path.exists() for path in go)
