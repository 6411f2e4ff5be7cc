"""TPUs: used if one answers. A script that requests one that does not gets a sentence, not gRPC's errors.

Laptops have none; but Tandem also runs on cloud machines that have one, or with a plug-in card.
"""

from __future__ import annotations

import functools
import os
import socket
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import tensorflow as tf

from core.vocabulary import units
from core.vocabulary.errors import TandemError

_ANSWER_S = 5.0
_NAMES = ("TPU_NAME", "COLAB_TPU_ADDR", "KUBE_GOOGLE_CLOUD_TPU_ENDPOINTS")
"""Environment variables in which clouds name a machine's TPU."""
_DEVICES = ("/dev/accel0", "/dev/vfio/0")


class NoTpu(TandemError, ValueError):
    """Also a ``ValueError``, as TensorFlow raises, so that scripts which try a TPU first continue without."""

    def __init__(self, what: str) -> None:
        super().__init__(
            code="no-tpu",
            what=what,
            fix="Laptops have no TPU: take TPUStrategy out and Tandem shares the training by itself, or use "
            "tf.distribute.MultiWorkerMirroredStrategy() instead.",
        )


def strategy(say: Callable[[str], None]) -> Any | None:
    """The strategy for this machine's TPU; None if there is none, or if it fails."""
    name = _own_name()
    if not name or _why_absent(name):
        return None
    try:
        resolver = tf.distribute.cluster_resolver.TPUClusterResolver(tpu=name)
        tf.config.experimental_connect_to_cluster(resolver)
        tf.tpu.experimental.initialize_tpu_system(resolver)
        return tf.distribute.TPUStrategy(resolver)
    except Exception as error:
        say(f"This machine names a TPU ({name}), and it cannot be used: {str(error)[:300]}")
        return None


def name_absence() -> None:
    """From here on, requesting a TPU that does not answer raises ``NoTpu`` at once."""
    resolver = tf.distribute.cluster_resolver.TPUClusterResolver
    original = resolver.__init__
    if hasattr(original, "__wrapped__"):
        return

    @functools.wraps(original)
    def init(self: Any, tpu: Any = None, *args: Any, **kwargs: Any) -> None:
        why = _why_absent(tpu or _own_name())
        if why:
            raise NoTpu(why)
        try:
            original(self, tpu, *args, **kwargs)
        except Exception as error:
            raise NoTpu(
                f"The TPU that the script asks for cannot be found ({type(error).__name__})."
            ) from error

    resolver.__init__ = init


def _own_name() -> str:
    """This machine's name for its TPU; ``""`` if it has none."""
    named = next((os.environ[name] for name in _NAMES if os.environ.get(name)), "")
    if not named and find_spec("libtpu") is not None and any(map(_is_there, _DEVICES)):
        return "local"
    return named


def _is_there(device: str) -> bool:
    return Path(device).exists()


def _why_absent(name: Any) -> str:
    """Why a TPU of this name surely does not answer; ``""`` if it may."""
    if not name:
        return "The script asks for a TPU, and there is none here."
    if not isinstance(name, str):
        return ""
    if name == "local":
        return (
            "" if _own_name() == "local" else "The script asks for this machine's own TPU, and it has none."
        )
    address = name.removeprefix("grpc://")
    host, colon, port = address.rpartition(":")
    if not colon or not port.isdigit():
        return ""  # a name that only its cloud can look up
    try:
        socket.create_connection((host.strip("[]"), int(port)), _ANSWER_S).close()
    except (OSError, OverflowError):
        return f"The TPU at {address:.100} does not answer within {units.duration(_ANSWER_S)}."
    return ""
