"""Load one task from its two folders, or say everything that is wrong with it at once.

Nothing of a task is executed here: `evaluate.py` and the submissions are read as text.
"""

from __future__ import annotations

import ast
import hashlib
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from grader.catalog.data import data_table
from grader.catalog.data.datasets import dataset_names
from grader.catalog.rule_codes import known_codes
from grader.catalog.submissions.promised_submissions import promises_in
from grader.catalog.tasks import expected_optimisation, metric_tables
from grader.catalog.tasks.launching import limits_of
from grader.catalog.tasks.task_files import task_files
from grader.catalog.tasks.translations import translations_in
from grader.errors import TaskError
from grader.model.precondition import Precondition
from grader.model.syntax_tree import parse_text
from grader.model.task import Artifact, Profile, Quoted, RubricItem, Task
from grader.plugins.sources import COURSE_FOLDERS

if TYPE_CHECKING:
    from grader.catalog.tasks.task_schema import ProfileTable, TaskFile


def load_task_folder(folder: Path, skeleton: Path) -> Task:
    """Load a task from its two folders.

    Raises:
        TaskError: the task's author has to mend something; the text names every problem with its line.
    """
    # Here and not above: pydantic takes a tenth of a second, and `grader lint` has no task.
    from grader.catalog.formats.problems import Problem, listed
    from grader.catalog.tasks.task_file import parse

    try:
        text = (folder / "task.toml").read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise TaskError(f"The task {folder.name} has no readable task.toml: {error}") from None
    parsed, problems = parse(text, known_codes(), dataset_names(), folder.name)
    entry_point = parsed.launch.entry_point if parsed else "train.py"
    images = parsed is None or data_table.has_images(parsed)
    wanted = ["build_model()", f"evaluate(model, {'images, labels' if images else 'folder'})"]
    examined = parsed is not None and (parsed.artifacts or any(item.answer for item in parsed.rubric))
    if parsed is not None and not parsed.data.scored:
        # Where nothing is scored, the network is all that weights can be held against, and there may be none.
        wanted = [] if examined else wanted[:1]
    if examined:
        wanted.append("examine(left, run)")
    problems += [Problem(0, p) for p in _folder_problems(folder, skeleton, entry_point, wanted)]
    if parsed is not None:
        own = data_table.own_data(parsed, folder.name)
        problems += [Problem(0, p) for p in data_table.folder_problems(folder, own)]
    named = _named_reference(text)
    if named is not None and not _exists(folder / "submissions" / named):
        problems.append(Problem(0, f"reference: there is no submissions/{named}."))
    if problems or parsed is None:
        raise TaskError(listed(f"The task {folder.name}", "task.toml", problems))
    return _task(parsed, folder, skeleton)


def _named_reference(text: str) -> str | None:
    """The reference as written, whatever else is wrong with the file."""
    try:
        named = tomllib.loads(text).get("reference")
    except tomllib.TOMLDecodeError:
        return None
    return named if isinstance(named, str) else None


def _exists(path: Path) -> bool:
    return path.is_file() or (path / "train.py").is_file()


def _folder_problems(folder: Path, skeleton: Path, entry_point: str, wanted: list[str]) -> list[str]:
    found: list[str] = []
    statement = folder / "statement.md"
    if not statement.is_file() or not statement.read_text(encoding="utf-8", errors="replace").strip():
        found.append(
            "statement.md: is missing or empty; write what the learner has to do and how it is judged."
        )
    found += _evaluate_problems(folder / "evaluate.py", wanted)
    if not (skeleton / entry_point).is_file():
        found.append(
            f"{skeleton / entry_point}: is missing; the script that the learner starts from. Put it into skeleton/ "
            f"in the task's folder."
        )
    promises, problems = promises_in(folder / "submissions")
    found += problems
    if not any(p.verdict == "accepted" for p in promises):
        found.append("submissions/accepted: holds nothing; a task must prove that it can be passed.")
    return found


def _evaluate_problems(path: Path, wanted: list[str]) -> list[str]:
    if not path.is_file():
        return [f"evaluate.py: is missing; it defines {' and '.join(f'`{w}`' for w in wanted)}."]
    try:
        tree = parse_text(path.read_bytes())
    except (SyntaxError, ValueError) as error:
        return [f"evaluate.py:{getattr(error, 'lineno', None) or 1}: does not parse: {error}."]
    defined = {n.name for n in tree.body if isinstance(n, ast.FunctionDef)}
    names = [w.partition("(")[0] for w in wanted]
    return [f"evaluate.py: defines no function `{name}`; add it." for name in names if name not in defined]


def version_files(folder: Path, skeleton: Path) -> Iterator[tuple[str, str, Path]]:
    """All that makes a version: (part, path within it, file); parts are `task`, `skeleton`, `rules` and `diagnoses`.

    Submissions prove a task and change nothing for who is judged by it.
    """
    beside = tuple((name, folder.parent / name) for name in COURSE_FOLDERS)
    for part, root in (("task", folder), ("skeleton", skeleton), *beside):
        for path in task_files(root):
            yield part, path.relative_to(root).as_posix(), path


def _version(folder: Path, skeleton: Path) -> str:
    sha = hashlib.sha256()
    for part, relative, path in version_files(folder, skeleton):
        name, content = relative.encode(), path.read_bytes()
        sha.update(b"%s %d %d\n" % (part.encode(), len(name), len(content)) + name + content)
    return sha.hexdigest()


def _task(parsed: TaskFile, folder: Path, skeleton: Path) -> Task:
    datasets = data_table.dataset_names_of(parsed, folder.name)
    return Task(
        name=folder.name,
        title=parsed.title,
        lab=parsed.lab,
        summary=parsed.summary,
        folder=folder,
        skeleton=skeleton,
        version=_version(folder, skeleton),
        launcher=parsed.launch.launcher,
        second_look=parsed.launch.second_look,
        entry_point=parsed.launch.entry_point,
        datasets=datasets,
        own_data=data_table.own_data(parsed, folder.name),
        checks=tuple(parsed.checks.apply),
        must=tuple(parsed.checks.must),
        costly=tuple(parsed.checks.costly),
        scored=parsed.data.scored,
        permute_labels=parsed.data.permute_labels and data_table.has_images(parsed),
        profiles=tuple(_profile(name, table, parsed) for name, table in parsed.profiles.items()),
        metrics=metric_tables.metrics(parsed),
        counted_in_rows=parsed.data.counted == "rows",
        samples=parsed.data.samples or ("images" if data_table.has_images(parsed) else "samples"),
        targets=metric_tables.targets(parsed, datasets),
        artifacts=tuple(
            Artifact(name, tuple(table.columns.items())) for name, table in parsed.artifacts.items()
        ),
        rubric=tuple(
            RubricItem(
                id=item.id,
                title=item.title,
                points=item.points,
                must=item.must,
                requires=tuple(item.requires),
                metric=item.metric,
                steps=tuple((p.of_target, p.share) for p in item.partial),
                answer=item.answer or "",
                needs=Precondition(item.needs) if item.needs else None,
            )
            for item in parsed.rubric
        ),
        statement=(folder / "statement.md").read_text(encoding="utf-8"),
        translations=translations_in(folder),
        reference=parsed.reference,
        expected=expected_optimisation.expected(parsed.expected),
    )


# A rank on a GPU has threads for its network, its gradients and its data besides the one that waits for the device.
_CORES_PER_RANK = {"gloo": 1, "nccl": 4}


def _profile(name: str, table: ProfileTable, parsed: TaskFile) -> Profile:
    return Profile(
        name=name,
        backend=table.backend,
        nproc_per_node=table.nproc_per_node or parsed.launch.nproc_per_node,
        nnodes=table.nnodes or parsed.launch.nnodes,
        limits=limits_of(table, parsed.limits),
        cores_per_rank=table.cores_per_rank or _CORES_PER_RANK[table.backend],
        datasets=tuple(table.datasets or ()),
        model_size=table.model_size or "",
        arguments=tuple(parsed.launch.arguments if table.arguments is None else table.arguments),
        shims=tuple(parsed.launch.shims),
        quoted=tuple(Quoted(q.figure, q.covers, q.source) for q in table.quoted),
    )
