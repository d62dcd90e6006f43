"""Pass messages from the database to the broker, deliver mails and the like, and set right what crashes left.

It also deletes what retention rules say, and compares what classes hand in. Runs beside web and workers until told to
end; any number of relays may run, and none is missed for a while: submissions are taken all the same.
"""

from __future__ import annotations

import argparse
from pathlib import Path

NAME = "relay"
ORDER = 84
_UNDER_WAY_S = 10.0
"""What is being delivered when the relay is told to end may take so long; another relay brings what takes longer."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `grader relay`."""
    parser.add_argument(
        "--every",
        type=float,
        default=10.0,
        metavar="S",
        help="seconds between two looks at what crashes left",
    )
    parser.add_argument(
        "--pulse",
        type=Path,
        metavar="FILE",
        help="touch this while all is well; it grows old when messages cannot be sent or the relay hangs",
    )


def run(args: argparse.Namespace) -> int:
    """Work until told to end; 0."""
    import signal
    import threading
    from functools import partial

    from grader.delivery.channel import DeliveryContext, find_channels
    from grader.delivery.runner import DeliveryRunner
    from grader.errors import EXIT_ACCEPTED, UsageError
    from grader.queue.celery import make_app
    from grader.settings import settings
    from grader.store.attempts.retention import RetentionRule
    from grader.store.database import Store
    from grader.store.files import open_files
    from grader.web.security.secret_key import service_secret
    from grader.web.similarity.comparing_thread import ComparingThread
    from grader.web.staff.class_similarity import compare_class
    from grader.worker.database_wait import wait_for_database
    from grader.worker.logs import set_up_logs
    from grader.worker.relay import Relay
    from grader.worker.retention_turn import RetentionTurn

    if not 0.1 <= args.every <= 3600:
        raise UsageError(f"--every {args.every}: give seconds from 0.1 to 3600")
    if args.pulse is not None:
        try:
            args.pulse.touch()
        except OSError as error:
            raise UsageError(f"--pulse {args.pulse}: it cannot be written ({error.strerror})") from None
    set_up_logs(service="relay")
    over = threading.Event()
    store = Store(settings().database)
    try:
        wait_for_database(store)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_ignored: over.set())
        secret = service_secret(settings().secret_key, settings().state_dir)
        deliveries = DeliveryRunner(find_channels(), lambda: DeliveryContext(store, settings(), secret))
        deliveries.start(over)
        files = open_files(store, settings().file_store, settings().state_dir / "files")
        comparing = ComparingThread(store, partial(compare_class, store, files))
        threading.Thread(target=comparing.run, args=(over,), name="comparing", daemon=True).start()
        site = RetentionRule.of_site(settings().evidence_days, settings().scripts_days)
        Relay(
            store,
            make_app(settings().broker),
            reconcile_s=args.every,
            pulse_file=args.pulse,
            chores=(RetentionTurn(store, files, site),),
        ).run(over)
        deliveries.join(_UNDER_WAY_S)
    finally:
        store.close()
    return EXIT_ACCEPTED
