"""Keys of one run: new each time, the owner's alone, and none of two members the same."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from core.exchange import keys
from core.exchange.keys import Keyring
from core.vocabulary.errors import TandemError
from tests.core.certificates import odd_certificate


def test_each_run_has_keys_of_its_own_which_only_their_user_can_read(tmp_path: Path) -> None:
    first, second = keys.make(tmp_path / "a"), keys.make(tmp_path / "a")
    assert first.fingerprint != second.fingerprint
    assert stat.S_IMODE(second.key_path.stat().st_mode) == 0o600
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o700
    keys.forget(tmp_path / "a")
    keys.forget(tmp_path / "a")
    assert not (tmp_path / "a").exists()


def test_a_link_in_the_place_of_the_folder_is_taken_away_and_what_it_names_is_left(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "file").write_text("keep")
    (tmp_path / "a").symlink_to(tmp_path / "other")
    keys.make(tmp_path / "a")
    assert (tmp_path / "other" / "file").read_text() == "keep"
    assert not (tmp_path / "a").is_symlink()


def test_two_members_with_one_certificate_are_refused(tmp_path: Path) -> None:
    own, other = keys.make(tmp_path / "a"), keys.make(tmp_path / "b")
    for pins in ({1: own.cert_der}, {1: other.cert_der, 2: other.cert_der}):
        with pytest.raises(TandemError) as failure:
            Keyring(own, pins)
        assert failure.value.code == "exchange-pins"


def test_an_authority_is_not_pinned(tmp_path: Path) -> None:
    with pytest.raises(TandemError) as failure:
        Keyring(keys.make(tmp_path / "a"), {1: odd_certificate(ca=True)})
    assert "member 1" in failure.value.what
