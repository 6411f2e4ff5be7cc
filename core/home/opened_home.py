"""The parts of the home that a node reads first, and holds until it stops. Blocks: use a thread."""

from __future__ import annotations

import contextvars
import logging
from dataclasses import dataclass

from msgspec.structs import replace

from core.home import home as homes
from core.home import identity, settings_file, trust_file
from core.home.certificate import out_of_date
from core.home.home import Home
from core.home.identity import Identity
from core.home.lock import HomeLock
from core.home.trust import TrustStore
from core.runtime.logs import Log
from core.vocabulary.errors import Problem
from core.vocabulary.settings import Settings
from core.vocabulary.versions import TANDEM

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class OpenedHome:
    """``notices``: problems that did not prevent the start, for the user."""

    home: Home
    lock: HomeLock
    log: Log
    identity: Identity
    settings: Settings
    trust: TrustStore
    notices: tuple[Problem, ...]

    def close(self) -> None:
        _log.info("Tandem ends")
        self.log.close()
        self.lock.release()


def open_home(home: Home) -> OpenedHome:
    """Prepare, lock and read the home. Raises ``TandemError`` where no node may start: the home is not
    writable or already held, or others can read its key."""
    homes.prepare(home)
    lock = HomeLock.acquire(home.lock)
    try:
        log = Log(home.logs)
        log.open()
        try:
            within = contextvars.copy_context()
            return within.run(_read, home, lock, log)
        except BaseException:
            log.close()
            raise
    except BaseException:
        lock.release()
        raise


def _read(home: Home, lock: HomeLock, log: Log) -> OpenedHome:
    log.enter()
    _log.info("Tandem %s starts in %s", TANDEM, home.folder)
    try:
        mine = identity.load_or_create(home.identity)
        settings, about_settings = settings_file.read(home.settings)
        trust, about_trust = trust_file.load(home.folder, mine.device_id)
    except Exception as error:
        _log.warning("Tandem does not start: %s", error)
        raise
    about_me = out_of_date(mine.cert_der, "This laptop's own", mine=True)
    if about_me is not None:
        about_me = replace(about_me, code=f"own-{about_me.code}")
    notices = tuple(problem for problem in (about_me, about_settings, about_trust) if problem is not None)
    return OpenedHome(home, lock, log, mine, settings, trust, notices)
