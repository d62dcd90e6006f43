"""The data that a task brings along: how it is made, from which files, and what a site has to give for it."""

from __future__ import annotations

from dataclasses import dataclass

IMAGES = "images"
"""The kind whose samples lie in FashionMNIST's own layout, whatever they were taken from."""


@dataclass(frozen=True, slots=True)
class DataFile:
    """A file that data is made from.

    Attributes:
        name: below the task's folder, or below the folder that a site gives.
        sha256: of its content, hex; anything else is refused.
        url: where it is downloaded from; "": it lies beside `task.toml`, or a site gives it.
    """

    name: str
    sha256: str
    url: str = ""


@dataclass(frozen=True, slots=True)
class OwnData:
    """A data set of one task.

    Attributes:
        name: of the data set.
        prepare: script below the task's folder, or the name of a kind that the catalog knows (`text`, …).
        files: what it is made from, by digest.
        source: what a site has to give besides, in words; "": nothing.
    """

    name: str
    prepare: str
    files: tuple[DataFile, ...] = ()
    source: str = ""

    @property
    def is_images(self) -> bool:
        """Whether scripts and scorer read images with labels from it."""
        return self.prepare == IMAGES
