"""Apptainer's images: one file per kind, converted from the container engine's image of the same tag.

A file may be made on one machine and copied to another that has no engine; its name says what is in it. Makes files
only when asked to (`grader images build --apptainer`).
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from grader.errors import InfraError
from grader.run.apptainer.installation import Installation, find_program
from grader.run.engine.image_export import export_image
from grader.run.image_context import recipe_path
from grader.run.images import NEEDED_TO_GRADE, current_context, image_name, missing
from grader.settings import settings

BUILD = "`grader images build --apptainer` makes them where a container engine is, and they may be copied from there"
_BUILD_S = 3600.0
_HALF = ".making-"
# Fast to read, which every start does; a good half of the size of the folder that it stands for.
_SQUASH = "-comp lz4"


def folder() -> Path:
    """Where image files lie."""
    return settings().apptainer_images or settings().state_dir / "apptainer"


def image_file(kind: str) -> Path:
    """Current file of a kind; raises InfraError where this is not a checkout."""
    return folder() / f"grader-{kind}-{current_context(kind).tag}.sif"


def recipe(kind: str) -> Path:
    """The definition that it is made by."""
    return recipe_path(f"{kind}.def")


def objection(installation: Installation) -> str:
    """Why the image files cannot be used; "" where they can."""
    files = [image_file(kind) for kind in NEEDED_TO_GRADE]
    gone = [file.name for file in files if not file.exists()]
    if gone:
        return f"image files are missing or of another version ({', '.join(gone)} in {folder()}): {BUILD}"
    for file in files:
        if not installation.may_read(file):
            return f"{installation.user} may not read {file}: name another folder in GRADER_APPTAINER_IMAGES"
    return ""


def build(kinds: Sequence[str], report: Callable[[str], object]) -> tuple[Path, ...]:
    """Convert what is not there yet, one process at a time; the engine's images must be.

    Args:
        kinds: which images; the service's is left out, as apptainer runs no services.
        report: is given one line per step.

    Returns:
        The files of all kinds asked for.

    Raises:
        InfraError: apptainer or the engine's image is not there, or a conversion failed.
    """
    program = needs_program()
    wanted = tuple(kind for kind in kinds if kind in NEEDED_TO_GRADE)
    files = tuple(image_file(kind) for kind in wanted)
    folder().mkdir(parents=True, exist_ok=True)
    with folder().joinpath(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for killed in folder().glob(f"{_HALF}*"):
            shutil.rmtree(killed)
        todo = [(kind, file) for kind, file in zip(wanted, files, strict=True) if not file.exists()]
        if absent := missing(tuple(kind for kind, _file in todo)):
            raise InfraError(f"The engine has no {' and no '.join(absent)}; run `grader images build` first.")
        for kind, file in todo:
            report(f"{kind}: converting {image_name(kind)} to {file.name}")
            _make(program, kind, file)
    return files


def _make(program: str, kind: str, file: Path) -> None:
    with tempfile.TemporaryDirectory(prefix=_HALF, dir=folder()) as scratch:
        unpacked, half = Path(scratch, "unpacked"), Path(scratch, file.name)
        unpacked.mkdir()
        export_image(image_name(kind), unpacked, settings().state_dir)
        _run(build_command(program, kind, unpacked, half), Path(scratch))
        half.chmod(0o644)
        # Under its name only when it is whole.
        half.rename(file)


def needs_program() -> str:
    """Path of apptainer; raises InfraError where it is not installed."""
    program = find_program()
    if program is None:
        raise InfraError("Apptainer is not installed: there is nothing to make image files with.")
    return program


def remove_old() -> tuple[str, ...]:
    """Remove files of other tags than the current ones; names of those that went.

    Raises:
        InfraError: this is not a checkout.
    """
    current = {image_file(kind) for kind in NEEDED_TO_GRADE}
    old = sorted(file for kind in NEEDED_TO_GRADE for file in folder().glob(f"grader-{kind}-*.sif"))
    gone = [file for file in old if file not in current]
    for file in gone:
        file.unlink()
    return tuple(file.name for file in gone)


def build_command(program: str, kind: str, unpacked: Path, file: Path) -> list[str]:
    """The command that makes one file of a folder with everything that is in the engine's image."""
    return [
        *(program, "build", "--disable-cache", "--mksquashfs-args", _SQUASH),
        *("--build-arg", f"FOLDER={unpacked}"),
        *(str(file), str(recipe(kind))),
    ]


def _run(command: Sequence[str], scratch: Path) -> None:
    variables = {"APPTAINER_TMPDIR": str(scratch), "APPTAINER_CACHEDIR": str(scratch / "cache")}
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=_BUILD_S,
            env=os.environ | variables,
            check=False,
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise InfraError(f"The image file was not made: {error}") from error
    if done.returncode:
        last = "\n".join(done.stdout.strip().splitlines()[-15:])
        raise InfraError(f"The image file was not made. Apptainer's last lines:\n{last}")
