"""Make what a service's first start lacks: tables, an administrator, a course of all tasks, data. Safe to say again.

The administrator's password is shown once and has to be changed at the first sign-in. `grader serve` does all this by
itself; where web, worker and relay are started apart, say it before them, and again after an upgrade.
"""

from __future__ import annotations

import argparse

NAME = "setup"
ORDER = 73


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `grader setup`."""
    parser.add_argument("--demo", action="store_true", help="make people with well-known passwords, too")


def run(args: argparse.Namespace) -> int:
    """Make what is missing; 0 when all is there."""
    from grader.cli.printing import emit_json
    from grader.errors import EXIT_ACCEPTED
    from grader.serve.first_start import ADMIN, set_up
    from grader.settings import settings
    from grader.store.database import Store

    store = Store(settings().database)
    try:
        opened = set_up(store, settings(), demo=args.demo)
    finally:
        store.close()
    if args.json:
        admin = {"login": ADMIN, "password": opened.admin_password} if opened.admin_password else None
        emit_json(
            {
                "schema": 1,
                "admin": admin,
                "demo": [{"login": login, "password": password} for login, password in opened.demo],
                "course": opened.course,
                "tasks": opened.tasks,
                "left_out": opened.left_out,
            }
        )
        return EXIT_ACCEPTED
    print(f"{opened.course}: {len(opened.tasks)} tasks")
    if opened.admin_password:
        print(f"Sign in as {ADMIN} with the password {opened.admin_password}; it is shown only now.")
    for login, password in opened.demo:
        print(f"To try it: {login} with the password {password}")
    for reason in opened.left_out:
        print(f"left out: {reason}")
    return EXIT_ACCEPTED
