"""Serve everything on this machine: web, worker and queue in one command, with SQLite and without Redis.

The first start makes an administrator, whose password is shown once, and a course of all tasks. Submissions run in the
runtime that GRADER_RUNTIME names; the default one does not isolate, so use it among people whom you trust.
"""

from __future__ import annotations

import argparse

NAME = "serve"
ORDER = 70


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `grader serve`."""
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default %(default)s)")
    parser.add_argument("--port", type=int, default=8000, help="port to listen on (default %(default)s)")
    parser.add_argument("--slots", type=int, default=1, metavar="N", help="attempts side by side; default: 1")
    parser.add_argument(
        "--demo", action="store_true", help="make people with well-known passwords to try it as"
    )


def run(args: argparse.Namespace) -> int:
    """Serve until told to end; 0."""
    import platform
    import signal
    import threading

    from grader.errors import EXIT_ACCEPTED
    from grader.serve.first_start import set_up
    from grader.serve.service_processes import ServiceProcesses
    from grader.serve.web_port import check_port_free, wait_until_serving
    from grader.settings import settings
    from grader.store.database import Store

    check_port_free(args.host, args.port)
    store = Store(settings().database)
    try:
        opened = set_up(store, settings(), demo=args.demo)
    finally:
        store.close()
    over = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_ignored: over.set())
    name = settings().worker_name or platform.node() or "worker"
    commands = {
        "web": ["web", "--host", args.host, "--port", str(args.port)],
        "worker": ["worker", "--name", name, "--slots", str(args.slots)],
        "relay": ["relay"],
    }
    processes = ServiceProcesses(commands, settings().state_dir / "logs")
    processes.start()
    try:
        if wait_until_serving(args.host, args.port, over):
            _greet(args, opened)
        while not over.wait(0.5):
            _complain(processes.restart_dead())
    finally:
        _complain(["ending; attempts that run are finished or go back into the queue"])
        processes.end()
    return EXIT_ACCEPTED


def _complain(said: list[str]) -> None:
    import sys

    for line in said:
        print(f"grader serve: {line}", file=sys.stderr, flush=True)


def _greet(args: argparse.Namespace, opened: object) -> None:
    from grader.cli.printing import emit_json
    from grader.serve.first_start import ADMIN, FirstStart
    from grader.serve.web_port import web_url
    from grader.settings import settings

    assert isinstance(opened, FirstStart)
    url = web_url(args.host, args.port)
    if args.json:
        admin = {"login": ADMIN, "password": opened.admin_password} if opened.admin_password else None
        demo = [{"login": login, "password": password} for login, password in opened.demo]
        emit_json(
            {
                "schema": 1,
                "url": url,
                "admin": admin,
                "demo": demo,
                "course": opened.course,
                "tasks": opened.tasks,
                "left_out": opened.left_out,
            }
        )
    else:
        print(f"\n  {url}   {opened.course}: {len(opened.tasks)} tasks")
        if opened.admin_password:
            print(f"  Sign in as {ADMIN} with the password {opened.admin_password}; it is shown only now.")
        for login, password in opened.demo:
            print(f"  To try it: {login} with the password {password}")
        for reason in opened.left_out:
            print(f"  left out: {reason}")
        print(f"  Logs are in {settings().state_dir / 'logs'}. Ctrl-C ends it.\n", flush=True)
    if settings().runtime == "process":
        _complain(["submissions run with your own rights (GRADER_RUNTIME=docker isolates them)"])
    if opened.demo and args.host not in ("127.0.0.1", "localhost", "::1"):
        _complain(["--demo has well-known passwords, and other machines can reach this one"])
