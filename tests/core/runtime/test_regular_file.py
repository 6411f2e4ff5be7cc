from pathlib import Path

import pytest

from core.runtime.regular_file import Folder, NotRegular, open_regular


def test_a_link_is_not_opened_even_if_it_leads_to_a_file(tmp_path: Path) -> None:
    (tmp_path / "x").touch()
    (tmp_path / "link").symlink_to("x")
    with pytest.raises(NotRegular), open_regular(tmp_path / "link"):
        pass


def test_below_a_folder_files_of_several_folders_are_opened(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "b" / "x").write_bytes(b"x")
    (tmp_path / "y").write_bytes(b"y")
    with Folder(tmp_path) as folder:
        for path in ("a/b/x", "y", "a/b/x"):
            with folder.open_regular(path) as file:
                assert file.read() == path[-1:].encode()


@pytest.mark.parametrize("linked", ["a", "a/b"])
@pytest.mark.parametrize("by_descriptor", [True, False])
def test_a_link_in_place_of_a_folder_on_the_way_is_not_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, linked: str, by_descriptor: bool
) -> None:
    if not by_descriptor:
        monkeypatch.setattr("os.supports_dir_fd", set())
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "b" / "x").touch()
    with Folder(tmp_path) as folder:
        folder.open_regular("a/b/x").close()
    (tmp_path / linked).rename(tmp_path / "elsewhere")
    (tmp_path / linked).symlink_to(tmp_path / "elsewhere")
    assert (tmp_path / "a" / "b" / "x").is_file()
    with Folder(tmp_path) as folder, pytest.raises((NotRegular, NotADirectoryError)):
        folder.open_regular("a/b/x")
