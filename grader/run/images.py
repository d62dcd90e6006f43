"""The images that containers are started from: their names, and which of them the engine has.

A tag follows what goes into its image (recipe, lock files, our code), so an image whose name is there is up to date by
construction. Names are computed without an engine. Never builds anything (`image_build` does).
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from grader.run.image_context import Context, base_tag, context_of
from grader.settings import settings

if TYPE_CHECKING:
    from docker.models.images import Image

KINDS = ("train", "evaluate", "service", "redis", "postgres")
"""Learner's code · scorer · web service and workers · broker · database."""
NEEDED_TO_GRADE = ("train", "evaluate")
"""Without these nothing is graded in containers."""

KIND_LABEL, TAG_LABEL, BASE_LABEL = "grader.image", "grader.tag", "grader.base"
TORCH_LABEL = "grader.torch"
"""What its PyTorch runs on, see `grader.run.devices.torch_build`; of the train image alone."""
CURRENT = "current"
"""Tag that always moves to what was built last: compose.yaml names images by it."""
BUILD = "run `make images` (or `make images OFFLINE=1` where no image registry can be reached)"
"""What to do about an image that is not there."""
_NAMELESS = "<none>:<none>"


@dataclass(frozen=True, slots=True)
class ImageState:
    """One kind of image, and what the engine has of it.

    Attributes:
        kind: see `KINDS`.
        name: the current name with its tag.
        state: `present`, `missing`, or `out of date` (only older tags are there).
        size_bytes: of the current image with all its layers, None when it is not there.
        shared_bytes: part of these that other current images have, too, and that the disk holds once.
        base: image that it was built upon, "" when it is not there.
        old: names of other tags of this kind.
    """

    kind: str
    name: str
    state: str
    size_bytes: int | None
    shared_bytes: int | None
    base: str
    old: tuple[str, ...]


def repository(kind: str) -> str:
    """Name of an image without its tag."""
    return f"grader-{kind}"


@cache
def current_context(kind: str) -> Context:
    """What goes into an image now; read once per process, so that a name and what is built under it never part.

    Raises:
        InfraError: this is not a checkout.
    """
    return context_of(kind, settings().image_extras)


def image_name(kind: str) -> str:
    """Current name of an image, `grader-<kind>:<tag>`.

    Raises:
        InfraError: this is not a checkout.
    """
    return f"{repository(kind)}:{current_context(kind).tag}"


def moving_name(kind: str) -> str:
    """Name of the image of a kind that was built last, whichever that is."""
    return f"{repository(kind)}:{CURRENT}"


def base_name() -> str:
    """Name of the base image that is made from Debian's packages."""
    return f"{repository('base')}:{base_tag()}"


def missing(kinds: tuple[str, ...] = NEEDED_TO_GRADE) -> tuple[str, ...]:
    """Names of current images that the engine does not have.

    Raises:
        InfraError: no engine answers, or this is not a checkout.
    """
    return tuple(state.name for state in image_states(kinds) if state.state != "present")


def image_states(kinds: tuple[str, ...] = KINDS) -> tuple[ImageState, ...]:
    """What the engine has of each kind.

    Raises:
        InfraError: no engine answers, or this is not a checkout.
    """
    from grader.run.engine.client import connect, engine_errors

    names = {kind: image_name(kind) for kind in kinds}
    with (
        contextlib.closing(connect()) as client,
        engine_errors("The container engine did not list its images"),
    ):
        tags = [tag for image in client.api.images() for tag in image.get("RepoTags") or ()]
        found = {kind: client.images.get(name) for kind, name in names.items() if name in tags}
        layers = {kind: _layers(image) for kind, image in found.items()}
    states = []
    for kind, name in names.items():
        now = (name, moving_name(kind))
        old = tuple(sorted(tag for tag in tags if tag.startswith(repository(kind) + ":") and tag not in now))
        if kind not in found:
            states.append(ImageState(kind, name, "out of date" if old else "missing", None, None, "", old))
            continue
        elsewhere = {layer for other, held in layers.items() if other != kind for layer in held}
        shared = sum(size for layer, size in layers[kind].items() if layer in elsewhere)
        base = found[kind].labels.get(BASE_LABEL, "")
        states.append(ImageState(kind, name, "present", found[kind].attrs["Size"], shared, base, old))
    return tuple(states)


def on_disk_bytes(kinds: tuple[str, ...] = KINDS) -> int:
    """Bytes that current images take together, layers that several share counted once.

    Raises:
        InfraError: no engine answers, or this is not a checkout.
    """
    from docker.errors import ImageNotFound

    from grader.run.engine.client import connect, engine_errors

    layers: dict[tuple[int, str, int], int] = {}
    doing = "The container engine did not tell the size of its images"
    with contextlib.closing(connect()) as client, engine_errors(doing):
        for kind in kinds:
            with contextlib.suppress(ImageNotFound):
                layers |= _layers(client.images.get(image_name(kind)))
    return sum(layers.values())


def remove_old(kinds: tuple[str, ...] = (*KINDS, "base")) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Remove images of ours whose tag is not the current one, or that a newer build has taken the name of.

    Returns:
        Names that were removed; names that stay because a container uses them.

    Raises:
        InfraError: no engine answers, or this is not a checkout.
    """
    from docker.errors import APIError

    from grader.run.engine.client import connect, engine_errors

    current = {base_name(), *(name(kind) for kind in KINDS for name in (image_name, moving_name))}
    removed: list[str] = []
    kept: list[str] = []
    with contextlib.closing(connect()) as client, engine_errors("The container engine did not remove images"):
        held = [
            image for kind in kinds for image in client.api.images(filters={"label": f"{KIND_LABEL}={kind}"})
        ]
        tags = {tag for image in held for tag in image.get("RepoTags") or ()} - {_NAMELESS}
        nameless = {image["Id"] for image in held if (image.get("RepoTags") or [_NAMELESS]) == [_NAMELESS]}
        mine = tuple(f"{repository(kind)}:" for kind in kinds)
        for name in sorted({tag for tag in tags if tag.startswith(mine)} - current | nameless):
            try:
                client.api.remove_image(name)
                removed.append(name)
            except APIError as error:
                if error.status_code != 409:
                    raise
                kept.append(name)
    return tuple(removed), tuple(kept)


def _layers(image: Image) -> dict[tuple[int, str, int], int]:
    # Two images that were built from the same cached steps tell the same time, command and size of them.
    return {(step["Created"], step["CreatedBy"], step["Size"]): step["Size"] for step in image.history()}
