"""Messages on their way to workers: Celery on Redis, or on a folder of this machine.

A message says that an attempt waits which needs this or that; whose turn it is and what becomes of it is in the
database alone (`grader.store`). So a message may be lost, doubled or late, and nothing is wrong afterwards. Knows no
store.

`celery -A grader.queue inspect active` and its like find the application here.
"""

from grader.queue.celery import app

__all__ = ["app"]
