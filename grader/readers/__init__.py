"""Work on what a stranger wrote, done in a process of its own that the kernel ends when it takes too much.

Some texts keep Python's own parser busy for minutes, and meanwhile no other thread of the process gets a turn. So
whoever has other things to do, or must answer in time, has such work done here: `read` gives the answer or raises
`OverLimitError`, within the limits, and nothing else of the process stands still meanwhile.

A process with one thread, such as a command's, forks for each piece of work: everything is imported there already. A
server or worker keeps a few readers, processes of their own that `pool` starts, hands work to and replaces.
"""

from __future__ import annotations

from grader.readers.limits import BusyError, OverLimitError, ReadingLimits
from grader.readers.pool import began, prepare, read
from grader.readers.serving import reads

__all__ = ["BusyError", "OverLimitError", "ReadingLimits", "began", "prepare", "read", "reads"]
