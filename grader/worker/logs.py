"""Logs of workers and relays: one JSON object a line on standard error, with the attempt's id where there is one.

What libraries log through Python's own `logging` comes out the same way. Sets up output; decides nothing.
"""

from __future__ import annotations

import logging
import sys

import structlog


def set_up_logs(**bound: object) -> None:
    """Have everything logged from here on written as JSON, with these fields on every line."""
    shared: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_logger_name,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.format_exc_info,
    ]
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=False,
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                structlog.processors.JSONRenderer(),
            ],
        )
    )
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(logging.INFO)
    # Every message taken and every request of the engine's API: nothing that anybody would look for.
    for chatty in ("alembic", "celery.worker.strategy", "celery.app.trace", "docker", "urllib3"):
        logging.getLogger(chatty).setLevel(logging.WARNING)
    structlog.contextvars.clear_contextvars()
    structlog.contextvars.bind_contextvars(**bound)
