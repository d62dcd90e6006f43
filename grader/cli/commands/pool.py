"""Show the containers that graders of this site keep warm or use right now; `--clear` removes those of dead graders."""

from __future__ import annotations

import argparse
from dataclasses import asdict

NAME = "pool"
ORDER = 74


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `grader pool`."""
    parser.add_argument("--clear", action="store_true", help="first remove what killed graders left behind")


def run(args: argparse.Namespace) -> int:
    """Print every container of this site, with what it is for, since when, and the memory it holds."""
    from grader.cli.printing import emit_json
    from grader.errors import EXIT_ACCEPTED
    from grader.run.engine.client import connect
    from grader.run.engine.inspection import list_containers
    from grader.run.engine.ownership import Ownership
    from grader.settings import settings

    client = connect()
    ownership = Ownership(settings().state_dir)
    try:
        removed = ownership.clear_dead(client) if args.clear else 0
        seen = list_containers(client, ownership)
    finally:
        ownership.close()
        client.close()
    if args.json:
        emit_json({"schema": 1, "removed": removed, "containers": [asdict(one) for one in seen]})
        return EXIT_ACCEPTED
    if args.clear:
        print(f"{removed} things of dead graders removed.")
    if not seen:
        print("No containers: no grader keeps any warm, and none judges in containers right now.")
    for one in seen:
        state = one.state if one.owner_lives else f"{one.state}, its grader is dead: `grader pool --clear`"
        print(f"{one.name}  {one.role:<8} {state:<10} {one.age_s:6.0f} s  {one.memory_bytes >> 20:5d} MiB")
    return EXIT_ACCEPTED
