"""Settings survive a restart; a broken file costs the settings, not the node."""

import stat
from pathlib import Path

import pytest

from core.home import settings_file
from core.vocabulary.errors import TandemError
from core.vocabulary.settings import Settings


def test_settings_survive_a_round_trip(tmp_path: Path) -> None:
    settings = Settings(name="Büro", port=30000, interfaces=("wlan0",), theme="dark")

    settings_file.write(tmp_path / "settings.json", settings)

    assert settings_file.read(tmp_path / "settings.json") == (settings, None)
    assert stat.S_IMODE((tmp_path / "settings.json").stat().st_mode) == 0o600


def test_no_file_means_the_defaults_and_nothing_to_say(tmp_path: Path) -> None:
    assert settings_file.read(tmp_path / "settings.json") == (Settings(), None)


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"[]", b'{"port": "x"}', b'{"port": 70000}', b'{"port": 80}', b"\xff\xfe", b"9" * 300_000],
)
def test_a_broken_file_gives_the_defaults_and_is_kept(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "settings.json"
    path.write_bytes(content)

    settings, problem = settings_file.read(path)

    assert settings == Settings()
    assert problem is not None and problem.code == "settings-corrupt"
    assert [kept.read_bytes() for kept in tmp_path.glob("settings-corrupt-*.json")] == [content]
    assert not path.exists()


def test_unknown_fields_of_a_newer_version_are_ignored(tmp_path: Path) -> None:
    (tmp_path / "settings.json").write_text('{"name": "a", "of_tomorrow": 1}')

    assert settings_file.read(tmp_path / "settings.json") == (Settings(name="a"), None)


def test_a_failing_disk_is_reported(tmp_path: Path) -> None:
    with pytest.raises(TandemError) as failure:
        settings_file.write(tmp_path / "missing" / "settings.json", Settings())

    assert failure.value.code == "settings-unwritable"


@pytest.mark.parametrize("name", ["a\nb", " a", "ü" * 32, "\x1b[31m"])
def test_a_name_that_cannot_be_announced_is_refused(name: str) -> None:
    with pytest.raises(TandemError) as failure:
        settings_file.check(Settings(name=name))

    assert failure.value.code == "bad-name"


@pytest.mark.parametrize(
    ("port", "fits"), [(0, True), (1, False), (1023, False), (1024, True), (65535, True), (65536, False)]
)
def test_a_port_is_any_or_one_that_an_ordinary_program_may_have(port: int, fits: bool) -> None:
    if fits:
        settings_file.check(Settings(port=port))
    else:
        with pytest.raises(TandemError, match=f"{port} can't be Tandem's port"):
            settings_file.check(Settings(port=port))


def test_a_name_of_63_bytes_is_accepted_and_a_longer_one_is_not() -> None:
    settings_file.check(Settings(name="ü" * 31 + "x"))
    with pytest.raises(TandemError):
        settings_file.check(Settings(name="ü" * 31 + "xx"))


def test_a_file_as_large_as_allowed_is_read(tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    for size, said in ((settings_file.MAX_BYTES, None), (settings_file.MAX_BYTES + 1, "too large")):
        path.write_bytes(b'{"name": "a"}'.ljust(size))
        settings, problem = settings_file.read(path)
        assert (settings.name, problem is None) == (("a", True) if said is None else ("", False))
        assert problem is None or "too large" in problem.detail


def test_the_new_name_of_a_broken_file_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "settings.json"
    path.write_bytes(b"{")
    _, problem = settings_file.read(path)
    (kept,) = tmp_path.glob("settings-corrupt-*.json")
    assert problem is not None and kept.name in problem.fix

    def refuse(self: Path, target: Path) -> None:
        raise OSError(30, "Read-only file system")

    path.write_bytes(b"{")
    monkeypatch.setattr(Path, "rename", refuse)
    _, problem = settings_file.read(path)
    assert problem is not None and "in a new file" in problem.fix and path.exists()
