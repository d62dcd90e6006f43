"""Print a link that signs one account in, once, within half an hour: the way in where nothing else lets anybody in.

Say it on a machine that has the service's database and key, such as in compose's `tools`: where the provider of sign-on
is away and passwords are off, where the only administrator has lost theirs, or so that somebody can add a sign-on to
the account that they have. Whoever has the link first is in.
"""

from __future__ import annotations

import argparse

NAME = "recover"
ORDER = 79


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `grader recover`."""
    parser.add_argument("login", metavar="LOGIN", help="the account's login name")


def run(args: argparse.Namespace) -> int:
    """Print the link; 0 when it is there."""
    from grader.cli.printing import emit_json
    from grader.errors import EXIT_ACCEPTED, UsageError
    from grader.settings import settings
    from grader.store.database import Store
    from grader.store.events import audit
    from grader.store.people.people import account_by_login
    from grader.store.tables.person import Role
    from grader.web.security.recovery import RecoveryKeys
    from grader.web.security.secret_key import service_secret

    store = Store(settings().database)
    try:
        account = account_by_login(store, args.login)
        if account is None or account.role is Role.CI:
            raise UsageError(f"there is no account of a person with the login {args.login}")
        if not account.enabled:
            raise UsageError(f"the account {account.login} is closed; an administrator opens it")
        key = RecoveryKeys(service_secret(settings().secret_key, settings().state_dir)).make(account)
        with store.write() as connection:
            audit(connection, f"person:{account.id}", "recovery_link_made", actor_id=None)
    finally:
        store.close()
    site = settings().public_url.rstrip("/") or "http://localhost:8000"
    if args.json:
        emit_json({"schema": 1, "login": account.login, "url": f"{site}/recover?key={key}"})
    else:
        print(f"{site}/recover?key={key}")
    return EXIT_ACCEPTED
