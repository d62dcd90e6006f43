"""Messages as files in a folder, for one machine without Redis: kombu's transport, with whole files only.

kombu opens a message's file under its final name and fills it then, so that a reader may meet an empty one and stumble.
Here a file gets its name when it is whole, and whoever renames it has it. Used through Celery like any other transport.
"""

from __future__ import annotations

import time
import uuid
from pathlib import Path
from queue import Empty
from typing import Any

from kombu.transport import filesystem
from kombu.utils.json import dumps, loads

from grader.files import write_whole


class Channel(filesystem.Channel):
    """Puts and gets by renaming. Every queue is reached by its own name, so no table of bindings is kept."""

    def _queue_bind(self, *_binding: Any) -> None:
        """Nothing to remember."""

    def get_table(self, exchange: str) -> list[Any]:
        """The queue of that name; none for events and commands, which nobody here would ever take."""
        queue = filesystem.exchange_queue_t(exchange, "", exchange)
        return [queue] if self.typeof(exchange).type == "direct" else []  # type: ignore[no-untyped-call]

    def _put(self, queue: str, payload: Any, **_options: Any) -> None:  # type: ignore[override]
        messages = Path(self.data_folder_out)
        # By the clock of the whole machine, so that names of several processes sort in order.
        name = f"{time.monotonic_ns():020}-{uuid.uuid4().hex}.{queue}.msg"
        write_whole(messages / name, dumps(payload))

    def _get(self, queue: str, timeout: Any = None) -> Any:
        taken = Path(self.processed_folder)
        for path in sorted(Path(self.data_folder_in).glob(f"*.{queue}.msg")):
            # Half a message has a name that starts with a dot.
            if path.name.startswith("."):
                continue
            mine = taken / path.name
            try:
                path.rename(mine)
            except FileNotFoundError:
                # Another one was quicker.
                continue
            try:
                return loads(mine.read_text(encoding="utf-8"))
            finally:
                mine.unlink(missing_ok=True)
        raise Empty


class Transport(filesystem.Transport):
    """Of `grader-folder://`."""

    Channel = Channel
