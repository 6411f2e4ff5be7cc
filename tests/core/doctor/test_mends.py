"""What Tandem mends by itself."""

import stat
from pathlib import Path

import pytest

from core.doctor import files
from core.doctor.mends import mend
from core.home import identity
from core.home.home import Home
from core.vocabulary.errors import TandemError
from tests.core.doctor.views import view


def test_a_mended_key_lets_the_node_start_again(tmp_path: Path) -> None:
    seen = view(tmp_path, port=None)
    mine = identity.load_or_create(seen.home.identity)
    mine.key_path.chmod(0o644)
    seen.home.identity.chmod(0o777)
    with pytest.raises(TandemError):
        identity.load_or_create(seen.home.identity)

    mend(seen.home, "key-mode")

    assert identity.load_or_create(seen.home.identity) == mine
    assert files.check_key(seen).level == "ok"


def test_a_link_in_the_keys_place_is_not_followed(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    home.identity.mkdir(parents=True)
    other = tmp_path / "other"
    other.write_text("")
    other.chmod(0o644)
    (home.identity / "key.pem").symlink_to(other)

    mend(home, "key-mode")

    assert stat.S_IMODE(other.stat().st_mode) == 0o644


def test_what_cannot_be_mended_is_refused_with_words(tmp_path: Path) -> None:
    for home, code, expected in (
        (Home(tmp_path), "not-sealed", "no-such-mend"),
        (Home(tmp_path / "missing"), "key-mode", "mend-failed"),
    ):
        with pytest.raises(TandemError) as failure:
            mend(home, code)
        assert failure.value.code == expected
        assert failure.value.fix
