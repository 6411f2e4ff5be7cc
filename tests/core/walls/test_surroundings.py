"""A walled trainer's view of its user's folders and environment, on every system."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from msgspec.structs import replace

from core.vocabulary.access import Grant
from core.vocabulary.trainer_messages import Enclosure
from core.walls import enclosure, places

GIVEN = {"PATH": "/bin", "SYSTEMROOT": "C:\\Windows", "AWS_SECRET_ACCESS_KEY": "x", "TF_X": "1"}


def walls_in(tmp_path: Path) -> Enclosure:
    own = str(tmp_path / "own")
    return Enclosure(folders=(own,), home=own, user=str(tmp_path / "user"))


@pytest.mark.skipif(sys.platform == "win32", reason="only administrators make links there")
def test_datasets_are_linked_and_leftovers_of_an_earlier_script_are_gone(tmp_path: Path) -> None:
    """Its links would redirect the next run's writes to their targets."""
    walls = walls_in(tmp_path)
    theirs, own = (tmp_path / name / ".keras" for name in ("user", "own"))
    for folder in (theirs / "datasets", own, tmp_path / "elsewhere"):
        folder.mkdir(parents=True)
    (theirs / "datasets/imdb.npz").write_text("user")
    for extracted in ("cifar", "cifar_archive", "flowers.zip", "flowers_extracted"):
        (theirs / "datasets" / extracted).touch()
    (theirs / "keras.json").write_text("{}")
    (tmp_path / "mine").write_text("mine")
    (own / "keras.json").symlink_to(tmp_path / "mine")
    (own / "datasets").symlink_to(tmp_path / "elsewhere")
    enclosure.prepare(walls)
    assert (tmp_path / "mine").read_text() == "mine" and list((tmp_path / "elsewhere").iterdir()) == []
    linked = sorted(path.name for path in (own / "datasets").iterdir())
    # Keras writes into the others.
    assert linked == ["cifar_archive", "flowers.zip", "imdb.npz"]
    assert (own / "datasets/imdb.npz").read_text() == "user" and (own / "keras.json").read_text() == "{}"


@pytest.mark.skipif(sys.platform == "win32", reason="only administrators make links there")
def test_a_sent_file_takes_precedence_over_the_users_own_of_that_name(tmp_path: Path) -> None:
    theirs, sent = tmp_path / "user/.keras/datasets", tmp_path / "sent"
    for folder, text in ((theirs, "user"), (sent, "sent")):
        (folder / "flowers_archive").mkdir(parents=True)
        (folder / "flowers_archive" / "f.tgz").write_text(text)
    (theirs / "cifar").mkdir()  # extracted from an archive that is gone
    opened = [
        Grant(asked=f"~/.keras/datasets/{name}_archive", path=str(sent / "flowers_archive"))
        for name in ("flowers", "cifar")
    ]
    enclosure.prepare(replace(walls_in(tmp_path), opened=tuple(opened)))
    found = tmp_path / "own/.keras/datasets"
    assert sorted(path.name for path in found.iterdir()) == ["cifar_archive", "flowers_archive"]
    assert (found / "flowers_archive" / "f.tgz").read_text() == "sent"


def test_keras_may_write_over_a_file_that_was_sent_but_is_not_the_genuine_one(tmp_path: Path) -> None:
    sent = tmp_path / "sent.npz"
    sent.write_text("part")
    asked = "~/.keras/datasets/mnist.npz"
    enclosure.prepare(replace(walls_in(tmp_path), opened=(Grant(asked=asked, path=str(sent)),)))
    placed = tmp_path / "own/.keras/datasets/mnist.npz"
    assert placed.read_text() == "part"
    placed.write_text("genuine")
    assert sent.read_text() == "part"


def test_unreadable_datasets_do_not_prevent_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: Path) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    (tmp_path / "user/.keras/datasets").mkdir(parents=True)
    monkeypatch.setattr(Path, "iterdir", refuse)
    enclosure.prepare(walls_in(tmp_path))
    assert (tmp_path / "own/.keras/datasets").is_dir()


def test_windows_keeps_its_environment_and_needs_no_links(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    walls = walls_in(tmp_path)
    found = enclosure.environment(walls, GIVEN)
    assert set(GIVEN) & set(found) == {"PATH", "TF_X"}
    (tmp_path / "user/.keras/datasets/flowers").mkdir(parents=True)
    monkeypatch.setattr(sys, "platform", "win32")
    assert enclosure.environment(walls, GIVEN) == GIVEN
    enclosure.prepare(walls)
    assert [each.name for each in (tmp_path / "own").iterdir()] == []


def test_libraries_of_the_users_are_read_but_no_folder_with_the_home_in_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, cuda = tmp_path / "home", tmp_path / "home" / "cuda" / "lib"
    cuda.mkdir(parents=True)
    monkeypatch.setenv("LD_LIBRARY_PATH", f"{cuda}:{tmp_path}:relative:")
    found = places.readable((str(home),))
    assert str(cuda) in found
    assert not {str(tmp_path), "relative", ""} & set(found)


def test_invariant_a_home_among_the_systems_folders_stays_closed(tmp_path: Path) -> None:
    """Such as a service's home in /opt."""
    opt, state = tmp_path.resolve() / "opt", tmp_path.resolve() / "opt/tandem/state"
    for folder in (
        opt / "cuda",
        opt / "tandem/venv",
        opt / "ben/.ssh",
        state / "identity",
        state / "runs/r/own",
    ):
        folder.mkdir(parents=True)
    (opt / "link").symlink_to(state)
    walls = Enclosure(
        folders=(str(state / "runs/r/own"),),
        home=str(state / "runs/r/own"),
        user=str(opt / "ben"),
        tandem=str(state),
    )
    found = places.readable(walls.private, (str(opt), "/usr"))
    assert {each for each in found if Path(each).is_relative_to(opt)} == {
        str(opt / "cuda"),
        str(opt / "tandem/venv"),
    }
    assert "/usr" in found


def test_datasets_that_lie_elsewhere_are_found_where_a_script_looks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "data/datasets").mkdir(parents=True)
    (tmp_path / "data/datasets/mnist.npz").write_text("theirs")
    monkeypatch.setenv("KERAS_HOME", str(tmp_path / "data"))
    assert places.keras_home() == str(tmp_path / "data")
    walls = replace(walls_in(tmp_path), keras=places.keras_home())
    enclosure.prepare(walls)
    assert (tmp_path / "own/.keras/datasets/mnist.npz").read_text() == "theirs"
    assert "KERAS_HOME" not in enclosure.environment(walls, {"KERAS_HOME": "x"})
    for named in ("", "relative", str(Path.home()), str(Path.home().parent)):
        monkeypatch.setenv("KERAS_HOME", named)
        assert places.keras_home() == "", "that holds more than Keras' files"


def test_caches_and_certificates_are_copies_of_each_run(tmp_path: Path) -> None:
    walls, fonts = walls_in(tmp_path), ".cache/matplotlib/fontlist-v390.json"
    (tmp_path / "user" / fonts).parent.mkdir(parents=True)
    (tmp_path / "user" / fonts).write_text("fonts")
    (tmp_path / "corporate.pem").write_text("certificates")
    enclosure.prepare(walls)
    (tmp_path / "own" / fonts).write_text("changed")
    assert (tmp_path / "user" / fonts).read_text() == "fonts"
    given = {"SSL_CERT_FILE": str(tmp_path / "corporate.pem"), "REQUESTS_CA_BUNDLE": "/nowhere"}
    found = enclosure.environment(walls, given)
    assert "REQUESTS_CA_BUNDLE" not in found
    copy = Path(found["SSL_CERT_FILE"])
    assert copy.is_relative_to(walls.home) and copy.read_text() == "certificates"
