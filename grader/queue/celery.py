"""The Celery application and its settings, each with its reason. The tasks are the worker's: `grader.worker.tasks`.

redis://HOST:PORT/0     many workers on many hosts
filesystem:///FOLDER    one machine without Redis; the same code, see `folder_transport`

Remote control and events are on, as Celery people expect: `inspect ping`, `inspect active`, Flower, exporters. They
give a right to nobody who had none: whoever reaches the broker can publish messages anyway. What they can do at worst
is to end worker processes (`control shutdown`), which the supervisor replaces, or to have them listen to nothing;
attempts, grades and files are in the database, which no command reaches. So the broker is to be reached by the service
alone.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from celery import Celery
from kombu.transport import TRANSPORT_ALIASES

from grader.errors import UsageError
from grader.queue.routes import route_by_need
from grader.settings import settings

_FOLDER_TRANSPORT = "grader-folder"
_KINDS = ("redis", "rediss", "sentinel", "filesystem")
_TIMEOUT_S = 4.0


def make_app(url: str | None = None) -> Celery:
    """An application for this broker; None: for the one that the settings name when it is first used.

    Raises:
        UsageError: that is no address of a broker that is supported.
    """
    made = Celery("grader", include=["grader.worker.tasks"], set_as_current=False)
    if url is None:
        made.add_defaults(lambda: configuration(settings().broker))
    else:
        made.conf.update(configuration(url))
    return made


def configuration(url: str) -> dict[str, Any]:
    """Celery's settings for this broker; what is not named stays as Celery has it.

    Raises:
        UsageError: that is no address of a broker that is supported.
    """
    kind = urlsplit(url).scheme
    if kind not in _KINDS:
        raise UsageError("GRADER_BROKER_URL is no address of a broker; write redis://HOST:PORT/0")
    folder = kind == "filesystem"
    return {
        "broker_url": f"{_FOLDER_TRANSPORT}://" if folder else url,
        "broker_transport_options": _folder_options(url) if folder else _redis_options(),
        "broker_connection_timeout": _TIMEOUT_S,
        # A broker that is away is waited for without end, from the first moment on.
        "broker_connection_max_retries": None,
        "broker_connection_retry_on_startup": True,
        # By what an attempt needs, and by who waits for it.
        "task_routes": (route_by_need,),
        # Nothing is ever unpickled.
        "accept_content": ["json"],
        # Outcomes are in the database.
        "task_ignore_result": True,
        # One attempt at a time in each process, in a thread of its own, so that the process answers meanwhile. Of
        # messages it takes one, acknowledges it when that is done, and leaves all others to whoever is free.
        "worker_pool": "threads",
        "worker_concurrency": 1,
        "worker_prefetch_multiplier": 1,
        "task_acks_late": True,
        # Flower and exporters. A folder has nobody to talk to: no commands there, and its events go nowhere.
        "worker_send_task_events": True,
        "worker_enable_remote_control": not folder,
        # Our own logs, one JSON object a line.
        "worker_hijack_root_logger": False,
        "worker_redirect_stdouts": False,
    }


def _redis_options() -> dict[str, Any]:
    return {
        # What learners wait for comes before regrades, as `queue_names` has it.
        "queue_order_strategy": "priority",
        "socket_connect_timeout": _TIMEOUT_S,
        # A connection through a dead switch is noticed: by a command after this long, by a waiting one after twice as
        # long. A learner's wait must not depend on what TCP thinks is patient.
        "socket_timeout": _TIMEOUT_S,
        "socket_keepalive": True,
        "health_check_interval": _TIMEOUT_S,
        # Publishing has its own second try: the outbox.
        "retry_on_timeout": False,
    }


def _folder_options(url: str) -> dict[str, Any]:
    folder = Path(urlsplit(url).path)
    if not folder.is_absolute():
        raise UsageError("GRADER_BROKER_URL names no folder; write filesystem:///FOLDER")
    TRANSPORT_ALIASES[_FOLDER_TRANSPORT] = "grader.queue.folder_transport:Transport"
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


app = make_app()
"""The application of this site: `celery -A grader.queue …`."""
