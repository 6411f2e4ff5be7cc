"""The host of a socket's address, as people and other programs may use it. Pure, but for interface names."""

from __future__ import annotations

import socket
from collections.abc import Sequence

from core.net.address import plain_host


def host_of(sockname: Sequence[object]) -> str:
    """``sockname`` as ``getsockname`` and ``getpeername`` give it; a link-local IPv6 host keeps its scope."""
    host = plain_host(str(sockname[0]))
    scope = sockname[3] if len(sockname) == 4 else 0
    if host.startswith("fe80:") and "%" not in host and isinstance(scope, int) and scope:
        try:
            return f"{host}%{socket.if_indextoname(scope)}"
        except OSError:
            return f"{host}%{scope}"
    return host
