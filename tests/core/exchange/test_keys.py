"""Keys of one run: new each time, on no disk, and different for every two members."""

from __future__ import annotations

import hmac
import ssl
from base64 import b64encode
from pathlib import Path

import pytest

from core.exchange import keys
from core.exchange.keys import Keyring, RunPair
from core.vocabulary.errors import TandemError
from tests.core.certificates import odd_certificate


def test_each_run_has_keys_of_its_own_which_are_shown_nowhere() -> None:
    first, second = keys.make(), keys.make()
    assert first.cert_der != second.cert_der and first.private_key != second.private_key
    assert len(first.private_key) == 32
    assert repr(first.private_key) not in repr(first)


def test_the_secret_alone_gives_the_same_keys_which_differ_by_member_and_run() -> None:
    secret = b"s" * 32
    pair = keys.derive(secret, "run", 1)
    assert pair == keys.derive(secret, "run", 1)
    pair.load_into(ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT))
    others = [keys.derive(secret, "run", 0), keys.derive(secret, "run2", 1), keys.derive(b"t" * 32, "run", 1)]
    assert len({each.cert_der for each in (pair, *others)}) == 4
    assert len({each.private_key for each in (pair, *others)}) == 4
    # RFC 5869 by hand: so that no other release derives other keys.
    prk = hmac.digest(bytes(32), secret, "sha256")
    assert pair.private_key == hmac.digest(prk, b"tandem-member-1\0" + b"1\0run" + b"\x01", "sha256")


def descriptors() -> int:
    return sum(1 for _ in Path("/dev/fd").iterdir())


def test_a_context_gets_the_key_and_no_file_has_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    pair, open_before = keys.make(), descriptors()
    for protocol in (ssl.PROTOCOL_TLS_SERVER, ssl.PROTOCOL_TLS_CLIENT):
        pair.load_into(ssl.SSLContext(protocol))  # raises if the two do not belong together
    with pytest.raises(OSError):
        RunPair(pair.cert_der, keys.make().private_key).load_into(ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER))
    assert list(tmp_path.iterdir()) == []
    assert descriptors() <= open_before, "others may have been closed meanwhile"


def test_where_pipes_have_no_path_a_file_holds_the_encrypted_key_for_a_moment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[bytes] = []

    class Context(ssl.SSLContext):
        def load_cert_chain(self, certfile: object, keyfile: object = None, password: object = None) -> None:
            seen.append(Path(str(keyfile)).read_bytes())
            super().load_cert_chain(certfile, keyfile, password)  # type: ignore[arg-type]

    monkeypatch.setattr(keys, "_pipes_have_paths", lambda: False)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    pair = keys.make()
    pair.load_into(Context(ssl.PROTOCOL_TLS_CLIENT))
    (written,) = seen
    assert written.startswith(b"-----BEGIN ENCRYPTED PRIVATE KEY-----")
    assert b64encode(pair.private_key)[:20] not in written
    assert list(tmp_path.iterdir()) == []


def test_two_members_with_one_certificate_are_refused() -> None:
    own, other = keys.make(), keys.make()
    for pins in ({1: own.cert_der}, {1: other.cert_der, 2: other.cert_der}):
        with pytest.raises(TandemError) as failure:
            Keyring(own, pins)
        assert failure.value.code == "exchange-pins"


def test_an_authority_is_not_pinned() -> None:
    with pytest.raises(TandemError) as failure:
        Keyring(keys.make(), {1: odd_certificate(ca=True)})
    assert "member 1" in failure.value.what
