"""Sign in to a grading service, so that `grader submit` and its like know where to and as whom.

URL is the service's address, as in a browser. Give a token that its account page made (--token), or a login name and a
password, which is asked for without showing it and kept nowhere: the service makes a token for it. Where people sign in
with an account of their institution, only the token is asked for. CI jobs need no login: they set GRADER_URL and
GRADER_TOKEN.
"""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from grader.client import Key

NAME = "login"
ORDER = 33
_PATIENCE_S = 10.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `grader login`."""
    parser.add_argument("url", metavar="URL", nargs="?", help="the service's address; default: the last one")
    parser.add_argument("--login", metavar="NAME", help="login name; default: it is asked for")
    parser.add_argument(
        "--token",
        action="store_true",
        help="ask for a token that the account page made, instead of a password",
    )
    parser.add_argument("--out", action="store_true", help="sign out: forget the token and revoke it")


def run(args: argparse.Namespace) -> int:
    """Sign in or out; 0 when it is done."""
    from grader.cli.printing import emit_json
    from grader.client import Service, forget, keep, sign_in
    from grader.errors import EXIT_ACCEPTED, UsageError
    from grader.settings import settings

    url = args.url or settings().url
    if args.out:
        gone = forget(url or None)
        revoked, why = (False, "") if gone is None else _revoked(gone)
        if args.json:
            emit_json({"schema": 1, "signed_out": gone is not None, "revoked": revoked})
        elif gone is None:
            print("Nobody was signed in.")
        elif revoked:
            print("Signed out; the token is revoked.")
        else:
            print(
                f"Signed out here. The token could not be revoked ({why}): do it on the account page of {gone.url}."
            )
        return EXIT_ACCEPTED
    if not url:
        raise UsageError("say where: `grader login https://HOST`")
    key = sign_in(url, _ask("Token: ")) if args.token else _with_password(sign_in(url, ""), args.login)
    with Service(key) as service:
        me = service.me()
    path = keep(key)
    if args.json:
        emit_json({"schema": 1, "url": key.url, "login": me.get("login"), "kept_in": str(path)})
    else:
        print(f"Signed in to {key.url} as {me.get('login')}; the token is in {path}.")
    return EXIT_ACCEPTED


def _with_password(guest: Key, login: str | None) -> Key:
    """A key for a password; for a token where the service has no passwords, which nobody is asked for in vain."""
    from grader.client import Service, sign_in

    page = f"{guest.url}/account"
    with Service(guest) as service:
        ways = service.ways_to_sign_in()
        by_others = " or ".join(ways.providers)
        if not ways.passwords:
            _tell(f"Sign in with {by_others} at {page} in a browser, make a token there, and give it here.")
            return sign_in(guest.url, _ask("Token: "))
        if by_others:
            again = f"grader login {guest.url} --token"
            _tell(f"Who signs in with {by_others} makes a token at {page} and says `{again}`.")
        login = login or _ask("Login: ", shown=True)
        return sign_in(guest.url, service.issue_token(login, _ask("Password: "), _name_of_this_machine()))


def _tell(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _revoked(key: Key) -> tuple[bool, str]:
    """Whether the service took the token back, or why not; being signed out here depends on no service."""
    from grader.client import Service
    from grader.errors import GraderError

    try:
        with Service(key, patience_s=_PATIENCE_S) as service:
            return service.end_token(), "it held no longer"
    except GraderError as error:
        return False, str(error)


def _ask(what: str, *, shown: bool = False) -> str:
    """What somebody types, secrets without an echo; a line of a pipe where nobody sits there."""
    import getpass

    from grader.errors import UsageError

    try:
        if not sys.stdin.isatty():
            text = sys.stdin.readline()
        elif shown:
            print(what, end="", file=sys.stderr, flush=True)
            text = sys.stdin.readline()
        else:
            text = getpass.getpass(what)
    except EOFError:
        text = ""
    if not text.strip():
        raise UsageError(f"nothing was given for {what.rstrip(': ').lower()}")
    return text.strip("\r\n") if not shown else text.strip()


def _name_of_this_machine() -> str:
    import platform

    return f"grader on {platform.node() or 'a terminal'}"[:80]
