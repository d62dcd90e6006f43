"""Before a worker or relay starts: is the database there, and of this version? Changes nothing in it."""

from __future__ import annotations

import time

import structlog

from grader.errors import InfraError
from grader.store import schema
from grader.store.database import Store, StoreUnavailableError

_LOOK_S = 1.0
_log = structlog.get_logger(__name__)


def wait_for_database(store: Store) -> None:
    """Wait until the database answers, however long that takes.

    Raises:
        InfraError: it is of another version.
    """
    waiting = False
    while True:
        try:
            problem = schema.status(store).problem
        except StoreUnavailableError as error:
            if not waiting:
                _log.warning("waiting", reason=str(error))
            waiting = True
            time.sleep(_LOOK_S)
            continue
        if problem is not None:
            raise InfraError(problem)
        return
