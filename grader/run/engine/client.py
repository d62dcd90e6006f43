"""The way to the container engine: one client per process, time limits on every call, errors that say whose fault.

Nothing is made here.
"""

from __future__ import annotations

import contextlib
import os
import socket
from collections.abc import Iterator
from typing import Any

import docker
import requests
from docker import DockerClient
from docker.errors import APIError, DockerException, ImageNotFound, NotFound
from docker.utils import parse_host

from grader.errors import InfraError

_CALL_S = 60.0
_LOOK_S = 3.0


def connect(timeout_s: float = _CALL_S) -> DockerClient:
    """A client of the engine that the environment names (DOCKER_HOST), or of this machine's.

    Raises:
        InfraError: no engine answers.
    """
    with engine_errors("No container engine answers"):
        _knock(timeout_s)
        client = docker.from_env(timeout=int(timeout_s))
        # The default keeps ten connections; every attached stream and every helper thread holds one.
        client.api.adapters.get("http+docker://")
        client.ping()
        return client


def _knock(timeout_s: float) -> None:
    # The SDK leaves its socket open where nobody listens, and says so in words that help nobody.
    address: Any = parse_host(os.environ.get("DOCKER_HOST"))
    if not address.startswith("http+unix://"):
        return
    path = address.removeprefix("http+unix://")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as line:
        line.settimeout(timeout_s)
        try:
            line.connect(path)
        except OSError as error:
            raise OSError(f"nothing listens at {path} ({error.strerror or error})") from error


def engine_problem() -> str:
    """Why no engine can be used here; "" where one answers."""
    try:
        client = connect(_LOOK_S)
    except InfraError as error:
        return str(error)
    client.close()
    return ""


@contextlib.contextmanager
def engine_errors(doing: str) -> Iterator[None]:
    """Turn whatever the engine or the way to it throws into an InfraError that names what was being done."""
    try:
        yield
    except ImageNotFound as error:
        raise InfraError(
            f"{doing}: the image is missing; `make images` builds it ({_words(error)})."
        ) from error
    except (DockerException, requests.exceptions.RequestException, OSError) as error:
        raise InfraError(f"{doing}: {_words(error)}.") from error


@contextlib.contextmanager
def gone_is_fine() -> Iterator[None]:
    """Pass over what the engine says when the thing to be removed is already gone or going."""
    try:
        yield
    except NotFound:
        return
    except APIError as error:
        # 409: somebody else is removing it at this moment.
        if error.status_code != 409:
            raise


def _words(error: BaseException) -> str:
    words = getattr(error, "explanation", None) or str(error) or type(error).__name__
    return str(words).strip().splitlines()[0][:400].rstrip(".")
