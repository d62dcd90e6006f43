"""The Celery application and every setting of it, with its reason. Registers no task: that is the worker's.

redis://HOST:PORT/0     many workers on many hosts
filesystem:///FOLDER    one machine without Redis; the same code, see `folder`
"""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from celery import Celery
from kombu.transport import TRANSPORT_ALIASES

from grader.errors import UsageError

_FOLDER_TRANSPORT = "grader-folder"
_KINDS = ("redis", "rediss", "sentinel", "filesystem")
_SILENT_S = 4.0


def make_app(url: str) -> Celery:
    """An application of its own for this broker; connects to nothing yet.

    Raises:
        UsageError: that is no address of a broker that is supported.
    """
    kind = urlsplit(url).scheme
    if kind not in _KINDS:
        raise UsageError("GRADER_BROKER_URL is no address of a broker; write redis://HOST:PORT/0")
    options = _folder_options(url) if kind == "filesystem" else _redis_options()
    app = Celery(
        "grader", broker=f"{_FOLDER_TRANSPORT}://" if kind == "filesystem" else url, set_as_current=False
    )
    app.conf.update(
        broker_transport_options=options,
        # A hint is `{"attempt_id": …}`: nothing is ever unpickled.
        task_serializer="json",
        accept_content=["json"],
        # Outcomes are in the database; no result backend, no chords.
        task_ignore_result=True,
        result_backend=None,
        # A hint is acknowledged as soon as it is taken: recovery is the reconciler's alone, and a second mechanism
        # that hands work out again (late acknowledgement, visibility timeouts) would only disagree with it.
        task_acks_late=False,
        # No slot hoards hints that another could act on.
        worker_prefetch_multiplier=1,
        # Memory that a library forgets to give back is bounded: a slot's process is replaced after so many hints.
        worker_max_tasks_per_child=100,
        # What runs has its lease in the database and does not care that the broker is away.
        worker_cancel_long_running_tasks_on_connection_loss=False,
        # A broker that is away is waited for without end, from the first moment on.
        broker_connection_retry=True,
        broker_connection_retry_on_startup=True,
        broker_connection_max_retries=None,
        broker_connection_timeout=_SILENT_S,
        # Nobody commands a worker through the broker: cancel and drain are flags in the database.
        worker_enable_remote_control=False,
        worker_send_task_events=False,
        # Our own logs, one JSON object a line.
        worker_hijack_root_logger=False,
        worker_redirect_stdouts=False,
        # Celery's clock of time limits would count all that a slot does for one hint; slots hold each attempt
        # against a limit of its own (see `grader.worker.pulse`).
        task_time_limit=None,
        task_soft_time_limit=None,
        task_create_missing_queues=True,
        timezone="UTC",
    )
    return app


def _redis_options() -> dict[str, Any]:
    return {
        "socket_connect_timeout": _SILENT_S,
        # A connection through a dead switch is noticed: by a command after this long, by a waiting one after twice as
        # long. A learner's wait must not depend on what TCP thinks is patient.
        "socket_timeout": _SILENT_S,
        "socket_keepalive": True,
        "health_check_interval": _SILENT_S,
        # Publishing has its own second try: the outbox.
        "retry_on_timeout": False,
    }


def _folder_options(url: str) -> dict[str, Any]:
    folder = Path(urlsplit(url).path)
    if not folder.is_absolute():
        raise UsageError("GRADER_BROKER_URL names no folder; write filesystem:///FOLDER")
    TRANSPORT_ALIASES[_FOLDER_TRANSPORT] = "grader.queue.folder:Transport"
    for name in ("hints", "taken", "control"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    return {
        "data_folder_in": str(folder / "hints"),
        "data_folder_out": str(folder / "hints"),
        "control_folder": str(folder / "control"),
        "processed_folder": str(folder / "taken"),
        # Looked at this often, in seconds; listing an empty folder costs nothing.
        "polling_interval": 0.1,
    }
