"""What is in an image of the engine, as a folder: for programs that make images of another kind from it.

The engine hands out the files of a container that is never started. That is several times as fast as its archive of
layers, which whoever reads it packs, unpacks and merges again.
"""

from __future__ import annotations

import contextlib
import secrets
import shlex
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from docker.models.containers import Container

from grader.errors import InfraError
from grader.run.engine.client import connect, engine_errors, gone_is_fine
from grader.run.engine.ownership import Ownership

_PIECE_BYTES = 1 << 20
_ENVIRONMENT = Path(".singularity.d", "env", "10-engine.sh")
"""Where what is unpacked keeps the image's variables: files of this folder are read at every start."""


def export_image(image: str, folder: Path, state_dir: Path) -> None:
    """Write an image's files and variables into an empty folder.

    Args:
        image: name and tag on the engine.
        folder: exists, and is empty. An ordinary user becomes owner of everything in it.
        state_dir: a grader that is killed here leaves a container that the next one clears away.

    Raises:
        InfraError: no engine, no such image, or the disk is full.
    """
    ownership = Ownership(state_dir)
    with (
        contextlib.closing(ownership),
        contextlib.closing(connect()) as client,
        engine_errors(f"{image} could not be unpacked"),
    ):
        container = client.containers.create(
            image,
            command=["true"],
            name=f"grader-unpack-{secrets.token_hex(4)}",
            labels=ownership.labels("unpack", image),
            network_mode="none",
        )
        try:
            _extract(container, folder)
            variables = client.images.get(image).attrs["Config"].get("Env") or []
        finally:
            with gone_is_fine():
                container.remove(force=True)
    file = folder / _ENVIRONMENT
    file.parent.mkdir(parents=True)
    file.write_text("".join(f"export {shlex.quote(one)}\n" for one in variables), encoding="utf-8")


def _extract(container: Container, folder: Path) -> None:
    # Devices are not for everybody to make; a container is given its own.
    command = ["tar", "--extract", "--file", "-", "--directory", str(folder), "--exclude", "dev/*"]
    with (
        tempfile.TemporaryFile() as words,
        subprocess.Popen(command, stdin=subprocess.PIPE, stderr=words) as tar,
    ):
        assert tar.stdin is not None
        pieces: Iterator[bytes] = iter(container.export(chunk_size=_PIECE_BYTES))  # type: ignore[arg-type]
        try:
            # A tar that gives up early says why itself, below.
            with contextlib.suppress(BrokenPipeError), tar.stdin as pipe:
                pipe.writelines(pieces)
        except BaseException:
            tar.kill()
            raise
        if tar.wait():
            words.seek(0)
            last = words.read().decode(errors="replace").strip().rpartition("\n")[2]
            raise InfraError(f"The image's files could not be written to {folder}: {last}")
