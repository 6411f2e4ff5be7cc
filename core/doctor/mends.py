"""What Tandem can mend by itself, under the code of the finding. Blocks: run in a thread."""

from __future__ import annotations

from collections.abc import Callable

from core.home.home import Home
from core.vocabulary.errors import TandemError


def close_key(home: Home) -> None:
    """Take everybody else's rights from the key. Links are not followed."""
    home.identity.chmod(0o700)
    for name in ("key.pem", "cert.pem"):
        path = home.identity / name
        if path.is_file() and not path.is_symlink():
            path.chmod(0o600)


MENDS: dict[str, Callable[[Home], None]] = {"key-mode": close_key}
"""The node adds ``socket-gone``, which only it can mend."""


def mend(home: Home, code: str) -> None:
    """Raises ``TandemError``: there is no such mend, or the system does not allow it."""
    work = MENDS.get(code)
    if work is None:
        raise TandemError(
            code="no-such-mend",
            what=f"Tandem can't mend {code[:60]!r} by itself.",
            fix="Follow the words of the doctor's finding.",
        )
    try:
        work(home)
    except OSError as error:
        raise TandemError(
            code="mend-failed",
            what=f"Mending {code} failed ({error.strerror or error}).",
            fix="Follow the words of the doctor's finding by hand.",
        ) from error
