from __future__ import annotations

from pathlib import Path

from core.run.outputs import bring, bytes_kept, is_model


def test_models_are_moved_and_nothing_is_overwritten(tmp_path: Path) -> None:
    for number in ("trained", "trained-2", "trained-3"):
        kept, place = tmp_path / "kept", tmp_path / "outputs"
        kept.mkdir()
        (kept / "model.keras").write_text(number)
        (kept / "model-2.weights.h5").write_text("weights")
        assert bytes_kept(kept) == len(number) + 7
        assert bring(kept, place) == (f"{number}/model-2.weights.h5", f"{number}/model.keras")
        assert (place / number / "model.keras").read_text() == number
        assert not kept.exists()


def test_half_a_file_is_left_behind(tmp_path: Path) -> None:
    (tmp_path / "kept" / "parts").mkdir(parents=True)
    (tmp_path / "kept" / "parts" / "model.keras").write_text("half")
    assert bring(tmp_path / "kept", tmp_path / "outputs") == ()
    assert not (tmp_path / "outputs").exists()
    (tmp_path / "kept" / "parts").mkdir(parents=True)
    (tmp_path / "kept" / "model.keras").write_text("whole")
    assert bring(tmp_path / "kept", tmp_path / "outputs") == ("trained/model.keras",)
    assert not (tmp_path / "kept").exists()


def test_where_nothing_was_trained_nothing_is_kept(tmp_path: Path) -> None:
    assert bring(tmp_path / "kept", tmp_path) == ()
    assert bytes_kept(tmp_path / "kept") == 0


def test_a_kept_model_is_known_by_its_path() -> None:
    assert is_model("trained/model.keras")
    assert is_model("trained-2/model-17.weights.h5")
    assert not is_model("model.keras")
    assert not is_model("trained/notes.txt")
    assert not is_model("trained/model.keras/../x")
