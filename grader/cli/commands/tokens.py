"""Make, list or revoke the tokens of workers that reach nothing but the service (`grader worker --server URL`).

Such a token lets workers claim attempts, read what they claimed, and say how that ended, and opens nothing else.
`issue` shows it, this once; keep it in a file that only the worker's account reads, and name that file in
GRADER_WORKER_TOKEN_FILE. Who revokes one gives what its workers have in hand to others.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from grader.store.database import Store
    from grader.store.people.tokens import TokenFacts

NAME = "tokens"
ORDER = 78
_DAY_S = 86_400.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `grader tokens`."""
    parser.add_argument("action", choices=("issue", "list", "revoke"), help="what to do")
    parser.add_argument(
        "name", metavar="NAME", nargs="?", help="issue, revoke: the token's name, such as the site's"
    )
    parser.add_argument(
        "--days", type=float, metavar="N", help="issue: how long it holds; default: until it is revoked"
    )


def run(args: argparse.Namespace) -> int:
    """Do one of the three; 0 when it is done, 1 where there is no such token."""
    from grader.errors import UsageError
    from grader.settings import settings
    from grader.store.database import Store
    from grader.worker.database_wait import wait_for_database

    if (args.name is None) != (args.action == "list"):
        raise UsageError(f"`grader tokens {args.action}` takes {'no' if args.name else 'a'} NAME")
    if args.days is not None and (args.action != "issue" or args.days <= 0):
        raise UsageError("--days goes with `issue`, and is above 0")
    store = Store(settings().database)
    try:
        wait_for_database(store)
        return _act(store, args)
    finally:
        store.close()


def _act(store: Store, args: argparse.Namespace) -> int:
    from grader.cli.printing import emit_json
    from grader.errors import EXIT_ACCEPTED, EXIT_NOT_ACCEPTED
    from grader.store.queue.worker_tokens import issue_worker_token, revoke_worker_token, worker_tokens

    if args.action == "issue":
        lifetime_s = None if args.days is None else args.days * _DAY_S
        token = issue_worker_token(store, args.name, lifetime_s=lifetime_s)
        if args.json:
            emit_json({"schema": 1, "name": args.name, "token": token})
        else:
            print(token)
        return EXIT_ACCEPTED
    if args.action == "revoke":
        revoked = revoke_worker_token(store, args.name)
        if args.json:
            emit_json({"schema": 1, "name": args.name, "revoked": revoked})
        else:
            print(f"{args.name} opens nothing any more." if revoked else f"There is no token {args.name}.")
        return EXIT_ACCEPTED if revoked else EXIT_NOT_ACCEPTED
    known = worker_tokens(store)
    if args.json:
        emit_json({"schema": 1, "tokens": [_facts(one) for one in known]})
        return EXIT_ACCEPTED
    for one in known:
        used = "never used" if one.used_at is None else f"last used {one.used_at:%Y-%m-%d %H:%M} UTC"
        ends = "" if one.expires_at is None else f", until {one.expires_at:%Y-%m-%d}"
        print(f"{one.name}  {one.prefix}…  {used}{ends}")
    if not known:
        print("There are no tokens of workers: `grader tokens issue NAME` makes one.")
    return EXIT_ACCEPTED


def _facts(token: TokenFacts) -> dict[str, str | None]:
    times = {"created_at": token.created_at, "expires_at": token.expires_at, "used_at": token.used_at}
    told = {name: None if at is None else at.isoformat() for name, at in times.items()}
    return {"name": token.name, "prefix": token.prefix, **told}
