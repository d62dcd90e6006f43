"""Starting a program as a terminal starts it, however the tests themselves were started.

A shell without job control starts what runs in the background with SIGINT ignored, and programs keep it so: a Ctrl-C
meant for the foreground must not end them. Tests that press Ctrl-C start their program in the foreground.
"""

from __future__ import annotations

import signal


def in_foreground() -> None:
    """As `preexec_fn` of a process: Ctrl-C reaches it."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
