"""What goes into an image: its recipe, its lock files and the part of this package that belongs inside.

Everything is read once, hashed and handed to the build as it was read, so that a tag always names what is in the image.
Imports nothing of what it reads and never talks to an engine.
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from grader.errors import InfraError
from grader.settings import BUILT_IN, CHECKOUT, settings

BASE_RECIPE = "base.sh"
"""Makes the base image where no registry can be reached; part of every tag, used or not."""
SCORER = tuple(
    f"grader.evaluate.{name}" for name in ("scorer.container_server", "classifier", "small_convnet")
)
"""Where the evaluate image starts, and what a task's evaluate.py imports: these, and what they import, are in there."""

_BESIDE = {
    "train": ("torch.lock", "train.lock", "extras.lock"),
    "evaluate": ("torch.lock",),
    "service": ("service.lock",),
    "redis": (),
    "postgres": ("postgres-entrypoint.sh",),
}
"""What goes in of `containers/` beside the recipe itself."""


@dataclass(frozen=True, slots=True)
class Context:
    """The files that a build sees.

    Attributes:
        kind: `train`, `evaluate`, `service`, `redis` or `postgres`.
        files: content by path inside the context; `Dockerfile` is the recipe, our code lies below `code/`.
        arguments: build arguments.
    """

    kind: str
    files: Mapping[str, bytes]
    arguments: tuple[tuple[str, str], ...] = ()

    @property
    def tag(self) -> str:
        """First 12 hex digits of a SHA-256 over everything that goes in."""
        digest = hashlib.sha256()
        for name, content in (
            *self.arguments_as_bytes(),
            *sorted(self.files.items()),
            (BASE_RECIPE, _recipe(BASE_RECIPE)),
        ):
            for part in (name.encode(), content):
                digest.update(len(part).to_bytes(8, "big") + part)
        return digest.hexdigest()[:12]

    def arguments_as_bytes(self) -> Iterator[tuple[str, bytes]]:
        """Build arguments as they are hashed."""
        for name, value in self.arguments:
            yield f"--build-arg {name}", value.encode()

    def write(self, folder: Path) -> None:
        """Lay the context out in an empty folder."""
        for name, content in self.files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)


def context_of(kind: str, extras: bool = False) -> Context:
    """What goes into an image of this kind; `extras` adds accelerate and lightning-fabric to `train`.

    Raises:
        InfraError: there are no recipes where GRADER_CONTAINERS_DIR says.
    """
    files = {name: _recipe(name) for name in _BESIDE[kind]}
    files["Dockerfile"] = _recipe(f"{kind}.Dockerfile")
    for root, path in _code(kind):
        files[f"code/{path.relative_to(root).as_posix()}"] = path.read_bytes()
    return Context(kind, files, (("EXTRAS", "1"),) if extras and kind == "train" else ())


def base_tag() -> str:
    """Tag of the base image that `base.sh` makes: follows its recipe."""
    return hashlib.sha256(_recipe(BASE_RECIPE)).hexdigest()[:12]


def recipe_path(name: str) -> Path:
    """Where a file of `containers/` lies."""
    return settings().containers_dir / name


def imported_modules(start: str) -> dict[str, Path]:
    """Modules of ours that `start` imports, directly or not, itself included, read from their text.

    Imports for type checkers alone are left out, those inside functions are not. Importing a module runs the packages
    above it, so they are in as well.

    Returns:
        Path of each module by its dotted name.
    """
    found: dict[str, Path] = {}
    todo = [start]
    while todo:
        name = todo.pop()
        path = None if name in found else _module_path(name)
        if path is None:
            continue
        found[name] = path
        todo.extend(_imports(ast.parse(path.read_bytes())))
        if "." in name:
            todo.append(name.rpartition(".")[0])
    return found


def _recipe(name: str) -> bytes:
    try:
        return recipe_path(name).read_bytes()
    except FileNotFoundError:
        raise InfraError(
            f"The image recipe {recipe_path(name)} is not here. Unset GRADER_CONTAINERS_DIR, or name the folder "
            "`containers` of the grader's repository."
        ) from None


def _code(kind: str) -> Iterator[tuple[Path, Path]]:
    """Our files for an image, each after the folder that its name in there counts from."""
    package = CHECKOUT / "grader"
    if kind == "train":
        yield CHECKOUT, package / "__init__.py"
        for name in ("launch", "probe"):
            yield from _files(CHECKOUT, package / name)
    elif kind == "evaluate":
        for start in SCORER:
            yield from ((CHECKOUT, path) for path in imported_modules(start).values())
    elif kind == "service":
        # An installed package has the other three inside it, and has them here as a clone has.
        yield from (
            pair for pair in _files(CHECKOUT, package) if not pair[1].is_relative_to(package / "builtin")
        )
        # A worker computes the names of the other images, so their recipes go along.
        for name in ("tasks", "skeletons", "containers"):
            yield from _files(BUILT_IN, BUILT_IN / name)


def _files(root: Path, folder: Path) -> Iterator[tuple[Path, Path]]:
    for path in folder.rglob("*"):
        inside = path.relative_to(folder).parts
        if path.is_file() and "__pycache__" not in inside and not any(part[0] == "." for part in inside):
            yield root, path


def _module_path(name: str) -> Path | None:
    path = CHECKOUT.joinpath(*name.split("."))
    for candidate in (path.with_suffix(".py"), path / "__init__.py"):
        if candidate.is_file():
            return candidate
    return None


def _imports(tree: ast.AST) -> Iterator[str]:
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.split(".")[0] == "grader")
        elif isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "grader":
            yield node.module
            # A name may be a module of its own; one that is not has no file and is dropped.
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        yield from _imports(node)
