"""An image of a real engine as a folder."""

from __future__ import annotations

import contextlib
import io
import os
import secrets
import subprocess
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from docker import DockerClient

from grader.errors import InfraError
from grader.run.engine.client import connect
from grader.run.engine.image_export import export_image


@pytest.fixture
def engine() -> Iterator[DockerClient]:
    try:
        client = connect()
    except InfraError as error:
        pytest.skip(str(error))
    with contextlib.closing(client):
        yield client


@pytest.fixture
def image(engine: DockerClient) -> Iterator[str]:
    """A small one with a program, a link, a device and a variable that a shell would take apart."""
    files = io.BytesIO()
    with tarfile.open(fileobj=files, mode="w") as archive:
        program = tarfile.TarInfo("usr/bin/hello")
        program.size, program.mode = 5, 0o755
        archive.addfile(program, io.BytesIO(b"hello"))
        link = tarfile.TarInfo("bin")
        link.type, link.linkname = tarfile.SYMTYPE, "usr/bin"
        archive.addfile(link)
        device = tarfile.TarInfo("dev/full")
        device.type, device.devmajor, device.devminor = tarfile.CHRTYPE, 1, 7
        archive.addfile(device)
    name = f"grader-test-{secrets.token_hex(4)}"
    engine.api.import_image_from_data(
        files.getvalue(), repository=name, tag="1", changes=['ENV GREETING="it\'s \\$HOME"', "ENV PATH=/bin"]
    )
    yield f"{name}:1"
    engine.images.remove(f"{name}:1", force=True)


def test_files_and_variables_of_an_image_lie_in_the_folder(
    image: str, engine: DockerClient, tmp_path: Path
) -> None:
    folder = tmp_path / "unpacked"
    folder.mkdir()
    export_image(image, folder, tmp_path / "state")
    assert folder.joinpath("bin/hello").read_text() == "hello"
    assert os.access(folder / "usr/bin/hello", os.X_OK)
    assert list(folder.joinpath("dev").iterdir()) == []
    (variables,) = folder.joinpath(".singularity.d/env").iterdir()
    told = subprocess.run(
        ["/bin/sh", "-c", f'. {variables}; echo "$GREETING $PATH"'],
        capture_output=True,
        text=True,
        check=True,
    )
    assert told.stdout == "it's $HOME /bin\n"
    assert engine.containers.list(all=True, filters={"ancestor": image}) == []


def test_an_image_that_is_not_there_is_named(engine: DockerClient, tmp_path: Path) -> None:
    with pytest.raises(InfraError, match="grader-nothing:1 could not be unpacked"):
        export_image("grader-nothing:1", tmp_path, tmp_path / "state")


def test_a_folder_that_takes_no_files_says_what_tar_said(
    image: str, engine: DockerClient, tmp_path: Path
) -> None:
    folder = tmp_path / "unpacked"
    folder.joinpath("usr/bin/hello/in-the-way").mkdir(parents=True)
    with pytest.raises(InfraError, match=r"could not be written to .*unpacked: .*tar: "):
        export_image(image, folder, tmp_path / "state")
    assert engine.containers.list(all=True, filters={"ancestor": image}) == []
