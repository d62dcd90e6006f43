"""Takes lists of people over in the background, in a thread of the web process; any number of processes may do so.

It is started when a list is brought, when the service starts, and when somebody looks at a list that is not done: so
whatever ended in the middle goes on where it stopped.
"""

from __future__ import annotations

import threading

import structlog

from grader.errors import GraderError
from grader.store.courses import roster_imports
from grader.web.service import WebService

_AT_ONCE = 20
"""Lines of one transaction: nobody waits long to write meanwhile, and a crash costs little."""


def start_taking_over(service: WebService) -> None:
    """Take over whatever lists there are, in a thread of its own."""
    threading.Thread(target=_run, args=(service,), name="roster imports", daemon=True).start()


def take_over_all(service: WebService) -> None:
    """The same, here and now; returns when there is no list left, or another thread of this process is at it."""
    while roster_imports.any_open(service.store):
        if not service.roster_job.acquire(blocking=False):
            return
        try:
            while roster_imports.take_next(service.store, _AT_ONCE, service.one_time_passwords.seal):
                pass
        finally:
            service.roster_job.release()


def _run(service: WebService) -> None:
    try:
        take_over_all(service)
    except GraderError as error:
        # The database is away; whoever looks at the list next starts this again.
        structlog.get_logger("grader.web").warning("taking over a list is interrupted", error=str(error))
