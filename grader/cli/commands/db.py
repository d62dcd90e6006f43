"""Bring the service's database to this version, show where it stands, back the site up or restore it.

`upgrade` and `downgrade` move the tables between versions, with all they hold; `status` ends with 0 when nothing is
pending and with 1 otherwise. `backup FILE` writes the whole database, and all evidence and reports, into one new file
while everybody works on; `restore FILE` puts it into an empty database, or with --replace in the place of all that is
there (stop web, workers and relay first). `retention` says what the rules of site and courses would delete now, and
deletes nothing. GRADER_DATABASE_URL says which database, GRADER_FILE_STORE where files lie.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from grader.store.database import Store
    from grader.store.files import FileStore
    from grader.store.site_backup import BackupContents

NAME = "db"
ORDER = 76


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `grader db`."""
    parser.add_argument(
        "action",
        choices=("upgrade", "downgrade", "status", "backup", "restore", "retention"),
        help="what to do",
    )
    parser.add_argument("file", metavar="FILE", type=Path, nargs="?", help="backup, restore: the file")
    parser.add_argument(
        "--to", metavar="VERSION", help="upgrade, downgrade: a version that `status` lists; `base`: no tables"
    )
    parser.add_argument("--replace", action="store_true", help="restore: in the place of all that is there")


def run(args: argparse.Namespace) -> int:
    """Do one of them; 0 when it is done."""
    from grader.errors import UsageError
    from grader.settings import settings
    from grader.store.database import Store

    if (args.file is not None) != (args.action in ("backup", "restore")):
        raise UsageError(f"`grader db {args.action}` takes {'no' if args.file else 'a'} FILE")
    if args.action == "downgrade" and args.to is None:
        raise UsageError("say how far down: --to VERSION; what that version has no place for is lost")
    store = Store(settings().database)
    try:
        return _act(store, args)
    finally:
        store.close()


def _act(store: Store, args: argparse.Namespace) -> int:
    from grader.cli.printing import emit_json
    from grader.errors import EXIT_ACCEPTED, EXIT_NOT_ACCEPTED
    from grader.store import schema, site_backup

    address = store.url.render_as_string(hide_password=True)
    if args.action == "upgrade":
        schema.upgrade(store, args.to or "head")
    elif args.action == "downgrade":
        schema.downgrade(store, args.to)
    elif args.action == "backup":
        made = site_backup.back_up_site(store, _files(store), args.file)
        _complain(made.lost)
        if args.json:
            emit_json({"schema": 1, "database": address, "file": str(args.file), **_facts(made)})
        else:
            files = f" with {made.num_files} files" if made.num_files else ""
            print(f"{address}{files} is in {args.file}, {made.size} bytes.")
        return EXIT_ACCEPTED
    elif args.action == "retention":
        _say_what_is_due(store, as_json=args.json)
        return EXIT_ACCEPTED
    elif args.action == "restore":
        site_backup.restore_site(store, _files(store), args.file, replace=args.replace)
    seen = schema.status(store)
    if args.json:
        emit_json(
            {
                "schema": 1,
                "database": address,
                "current": seen.current,
                "head": seen.head,
                "pending": seen.pending,
            }
        )
    elif seen.up_to_date:
        print(f"{address} is at version {seen.current}, up to date.")
    else:
        at = "is empty" if seen.current is None else f"is at version {seen.current}"
        if seen.pending:
            print(f"{address} {at}; pending: {' '.join(seen.pending)}: `grader db upgrade`")
        else:
            print(f"{address} {at}, not ours: {seen.problem}")
    return EXIT_NOT_ACCEPTED if args.action == "status" and not seen.up_to_date else EXIT_ACCEPTED


def _say_what_is_due(store: Store, *, as_json: bool) -> None:
    from dataclasses import asdict

    from grader.cli.printing import emit_json
    from grader.settings import settings
    from grader.store.attempts.retention import RetentionRule, due_content, rules

    site = RetentionRule.of_site(settings().evidence_days, settings().scripts_days)
    found = [(title, rule, due_content(store, number, rule)) for number, title, rule in rules(store, site)]
    if as_json:
        courses = [{"title": title, "rule": asdict(rule), "due": asdict(due)} for title, rule, due in found]
        emit_json({"schema": 1, "site": asdict(site), "courses": courses})
        return
    if not found:
        print("Everything is kept for good: neither the site nor a course has a rule.")
    for title, rule, due in found:
        days = (("evidence", rule.evidence_days), ("scripts", rule.scripts_days))
        kept = [f"{what} for {'good' if one is None else f'{one} days'}" for what, one in days]
        print(f"{title}: keeps {', '.join(kept)}")
        print(
            f"  due now: evidence of {due.num_evidence} attempts ({due.evidence_bytes} bytes), "
            f"scripts of {due.num_scripts}"
        )


def _files(store: Store) -> FileStore:
    from grader.settings import settings
    from grader.store.files import open_files

    return open_files(store, settings().file_store, settings().state_dir / "files")


def _facts(made: BackupContents) -> dict[str, object]:
    return {"bytes": made.size, "files": made.num_files, "lost": list(made.lost)}


def _complain(lost: tuple[str, ...]) -> None:
    if lost:
        few = ", ".join(digest[:12] for digest in lost[:3])
        print(
            f"grader: {len(lost)} files of attempts are missing or damaged and are not in the backup ({few} …)",
            file=sys.stderr,
        )
