"""A deadline played before it comes: invented people and running times, the real store and whose turn it is there.

The clock of its database is played, too, so that half an hour passes in seconds while leases, limits and due dates hold
as they always do. Runs no script, needs no worker, and touches no database but its own.
"""

from grader.rehearsal.durations import Durations, recorded
from grader.rehearsal.result import RehearsalResult, ServedAttempt
from grader.rehearsal.scenario import Scenario
from grader.rehearsal.simulation import rehearse

__all__ = ["Durations", "RehearsalResult", "Scenario", "ServedAttempt", "recorded", "rehearse"]
