"""Takes deliveries and sees that they arrive, in threads beside whatever else the process does. Any number may run.

Decides when one is tried again and when it is given up; what is sent is the channels' affair.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Sequence

import structlog

from grader.delivery.channel import Channel, DeliveryContext
from grader.delivery.failures import (
    ChannelAwayError,
    DeliveryEarlyError,
    DeliveryFailedError,
    DeliveryRefusedError,
)
from grader.store.database import StoreUnavailableError
from grader.store.delivery.deliveries import Delivery, delivered, failed, forget_ended, postpone, take
from grader.store.delivery.delivery_channels import note_channel

POLL_S = 1.0
GIVE_UP_S = 3 * 86400.0
SOONEST_S, LATEST_S = 60.0, 4 * 3600.0
_AWAY_S, _LONGEST_AWAY_S = 5.0, 300.0
_TIDY_S = 3600.0
_REGULARLY_S = 60.0
_log = structlog.get_logger(__name__)


def pause_s(waited_s: float) -> float:
    """Until the next try of one that has been tried for so long: about as long again, a minute to four hours.

    Not on the second, so that many that failed at once do not come back at once.
    """
    return min(LATEST_S, max(SOONEST_S, waited_s)) * random.uniform(0.8, 1.2)


class DeliveryRunner:
    """Delivers from `start` until the event is set, and `join` has waited for what is under way."""

    def __init__(
        self, channels: Sequence[Channel], context: Callable[[], DeliveryContext], *, poll_s: float = POLL_S
    ) -> None:
        """`context` makes one for each thread."""
        self._channels = channels
        self._context = context
        self._poll_s = poll_s
        self._threads: list[threading.Thread] = []

    def start(self, over: threading.Event) -> None:
        """Start the threads of all channels that this site has set up, and note for the others that it has not."""
        for channel in self._channels:
            context = self._context()
            missing = channel.missing(context.settings)
            note_channel(context.store, channel.name, set_up=not missing, problem=missing or None)
            for number in range(0 if missing else channel.threads):
                worker = ChannelWorker(channel, self._context(), self._poll_s, first=number == 0)
                name = f"{channel.name}-{number}"
                self._threads.append(
                    threading.Thread(target=worker.run, args=(over,), name=name, daemon=True)
                )
        for thread in self._threads:
            thread.start()

    def join(self, timeout_s: float) -> None:
        """Wait until all have ended; what takes longer is taken again by another relay."""
        deadline = time.monotonic() + timeout_s
        for thread in self._threads:
            thread.join(max(0.0, deadline - time.monotonic()))


class ChannelWorker:
    """One thread of one channel; of all of them `first` does what the channel does regularly."""

    def __init__(self, channel: Channel, context: DeliveryContext, poll_s: float, *, first: bool) -> None:
        self._channel = channel
        self._regularly = channel.regularly if first else None
        self._regular_s = 0.0
        self._context = context
        self._poll_s = poll_s
        self._away_s = 0.0
        self._trouble = ""
        self._tidied = time.monotonic()

    def run(self, over: threading.Event) -> None:
        """Deliver until the event is set."""
        while not over.is_set():
            pause = self.turn()
            if pause:
                self._context.drop()
                over.wait(pause)
        self._context.drop()

    def turn(self) -> float:
        """Deliver one; returns how long to wait until the next."""
        try:
            self._do_regularly()
            taken = take(self._context.store, self._channel.name)
            if not taken:
                return self._poll_s
            (delivery,) = taken
            return self._deliver(delivery)
        except StoreUnavailableError as error:
            self._note(str(error), by_store=False)
            return _AWAY_S
        except Exception:  # noqa: BLE001 - logged; nothing here ends its thread
            _log.exception("delivering failed", channel=self._channel.name)
            return _AWAY_S

    def _deliver(self, delivery: Delivery) -> float:
        store = self._context.store
        try:
            answer = self._channel.deliver(self._context, delivery)
        except ChannelAwayError as error:
            self._away_s = min(_LONGEST_AWAY_S, 2 * self._away_s or _AWAY_S)
            failed(store, delivery, str(error), retry_in_s=self._away_s)
            self._note(str(error))
            return self._away_s * random.uniform(0.8, 1.2)
        except DeliveryEarlyError as error:
            postpone(store, delivery, str(error), for_s=error.for_s)
        except DeliveryRefusedError as error:
            failed(store, delivery, str(error), retry_in_s=None)
            self._tell("delivery_refused", delivery, str(error))
        except DeliveryFailedError as error:
            self._again(delivery, str(error), error.retry_in_s)
        except StoreUnavailableError:
            raise
        except Exception as error:  # noqa: BLE001 - a fault of ours, or an answer that nobody foresaw
            self._again(delivery, f"{type(error).__name__} in the grader", None)
            _log.exception("a channel failed", channel=self._channel.name, delivery=delivery.id)
        else:
            delivered(store, delivery, answer)
        self._away_s = 0.0
        self._note("")
        return 0.0

    def _again(self, delivery: Delivery, answer: str, retry_in_s: float | None) -> None:
        over = delivery.waited_s >= GIVE_UP_S
        wait = None if over else retry_in_s or pause_s(delivery.waited_s)
        failed(self._context.store, delivery, answer, retry_in_s=wait)
        self._tell("delivery_given_up" if over else "delivery_failed", delivery, answer)

    def _tell(self, what: str, delivery: Delivery, answer: str) -> None:
        # Without the payload and the receiver: both are somebody's own.
        _log.warning(
            what, channel=delivery.channel, delivery=delivery.id, tries=delivery.tries, answer=answer
        )

    def _note(self, trouble: str, *, by_store: bool = True) -> None:
        """Say once what is away, and once that it is back; to the pages, too, where the database is there."""
        if trouble == self._trouble:
            return
        self._trouble = trouble
        _log.warning("channel", channel=self._channel.name, problem=trouble or None)
        if by_store:
            note_channel(self._context.store, self._channel.name, set_up=True, problem=trouble or None)

    def _do_regularly(self) -> None:
        now = time.monotonic()
        if now - self._tidied >= _TIDY_S:
            self._tidied = now
            forget_ended(self._context.store)
        if self._regularly is not None and now >= self._regular_s:
            self._regular_s = now + _REGULARLY_S
            self._regularly(self._context)
