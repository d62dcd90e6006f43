"""Write a complete task to start from: it proves itself as it is, and is then yours to change.

    grader new task my-task
    grader verify my-task

It has a task file with comments, a statement, a skeleton, trusted scoring, two accepted submissions and a flawed one
for each thing that it judges.
"""

from __future__ import annotations

import argparse

NAME = "new"
ORDER = 45


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `grader new`."""
    parser.add_argument("kind", choices=("task",), help="what to write")
    parser.add_argument("name", metavar="NAME", help="its name: small letters, digits, - and _")
    parser.add_argument(
        "--title", metavar="TEXT", help="what learners read first; default: the name in words"
    )


def run(args: argparse.Namespace) -> int:
    """Write the task and say what to do next."""
    from grader.catalog.new_task import write_new_task
    from grader.catalog.promised_submissions import submissions_of
    from grader.catalog.tasks import load_task
    from grader.cli.printing import emit_json
    from grader.errors import EXIT_ACCEPTED

    folder, skeleton = write_new_task(args.name, args.title)
    # Loaded once, so that nothing is promised that the catalog would refuse.
    promised = submissions_of(load_task(args.name))
    if args.json:
        document = {"schema": 1, "task": args.name, "folder": str(folder), "skeleton": str(skeleton)}
        emit_json(document | {"submissions": [p.name for p in promised]})
        return EXIT_ACCEPTED
    print(f"{folder}\n  task.toml      limits, data, rules, points: every table has its comment")
    print("  statement.md   what learners read")
    print("  evaluate.py    the trusted score")
    print(f"  submissions/   {len(promised)} that prove it, in folders named after the verdict they must get")
    print(f"{skeleton}\n  train.py       where learners start")
    print(f"\nProve it as it is, then change it and prove it again:\n\n    grader verify {args.name}")
    return EXIT_ACCEPTED
