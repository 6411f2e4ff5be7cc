"""Messages for the tests of links."""

from __future__ import annotations

from msgspec.structs import replace

from core.vocabulary.peer_messages import Hello, ModulesTold
from core.vocabulary.readings import Hardware, Reading
from core.vocabulary.versions import LINK_PROTOCOL, Versions

VERSIONS = Versions(
    tandem="0.1.0",
    protocol=LINK_PROTOCOL,
    python="3.11",
    tensorflow="2.21.0",
    keras="3.15.1",
    platform="Linux x86_64",
)


def hello(
    name: str = "anna", *, port: int = 27600, session: bytes = b"", number: int = 0, **versions: object
) -> Hello:
    return Hello(
        name=name,
        versions=replace(VERSIONS, **versions),
        hardware=Hardware(cpu="a cpu", cores=4, memory_bytes=16_000_000_000),
        port=port,
        busy=False,
        session=session,
        number=number,
    )


def reading(at_s: float = 1.0) -> Reading:
    return Reading(
        at_s=at_s,
        cpu_pct=10.0,
        memory_used_bytes=1,
        memory_total_bytes=2,
        sent_bytes_s=0.0,
        received_bytes_s=0.0,
    )


def large(number: int = 0) -> ModulesTold:
    """A message in two pieces."""
    return ModulesTold(question=number, missing=("é" * 250,) * 1_000)
