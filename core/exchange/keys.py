"""Keys and certificates that members of one generation of a run have for each other, and for nothing else.

A node makes its member's pair in a folder of the run; the certificates (DER, some 500 bytes) travel with the
ports over the nodes' own links. The identity of the laptop never enters the process that runs the script.
Security invariant: a member's rank is what its certificate says, byte by byte, never what it says itself.
"""

from __future__ import annotations

import shutil
import ssl
from collections.abc import Mapping
from pathlib import Path

from core.exchange.problems import bad_pins
from core.home.certificate import check_peer_certificate
from core.home.identity import Identity, load_or_create
from core.net import tls
from core.vocabulary.errors import TandemError


def make(folder: Path) -> Identity:
    """A new key and certificate in ``folder``, which only this user may read; older ones there are gone."""
    forget(folder)
    return load_or_create(folder)


def forget(folder: Path) -> None:
    if folder.is_symlink():
        folder.unlink()
    elif folder.exists():
        shutil.rmtree(folder)


class Keyring:
    """One member's own pair, and the others' certificates by rank. Raises ``TandemError`` for unfit ones."""

    def __init__(self, own: Identity, pins: Mapping[int, bytes]) -> None:
        if len(set(pins.values())) != len(pins) or own.cert_der in pins.values():
            raise bad_pins("two members have the same one")
        for rank, pin in pins.items():
            try:
                check_peer_certificate(pin)
            except TandemError as error:
                raise bad_pins(f"member {rank}'s is unfit ({error.what})") from error
        self._rank_of = {pin: rank for rank, pin in pins.items()}
        self._pins = dict(pins)
        self.members = len(pins) + 1
        # Made once: whoever knocks must not make us read files.
        self.server: ssl.SSLContext = tls.server_context(own, pins.values())
        self._clients = {rank: tls.client_context(own, pin) for rank, pin in pins.items()}

    def client(self, rank: int) -> ssl.SSLContext:
        return self._clients[rank]

    def rank_of(self, certificate: bytes) -> int | None:
        """Whose it is; None: nobody's of this run and generation."""
        return self._rank_of.get(certificate)
