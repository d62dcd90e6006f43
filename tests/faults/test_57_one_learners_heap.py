"""Row 57: one learner hands in a thousand times. Whoever comes later waits less than twice as long as without them."""

from __future__ import annotations

from grader.store.tables.attempt import AttemptState
from tests.worker.conftest import Site

HEAP, OTHERS = 1000, 3


def test_others_wait_less_than_twice_as_long(site: Site) -> None:
    """Counted in attempts that are taken before theirs, so that a slow machine says the same."""
    rig = site()
    greedy = rig.person("greedy")
    for _ in range(HEAP):
        rig.hand_in(rig.script("print('again')"), person=greedy)
    others = [rig.hand_in(person=rig.person(f"other{number}")) for number in range(OTHERS)]
    rig.relay()
    rig.worker()
    claimed = [rig.wait(attempt_id, AttemptState.JUDGED).claimed_at for attempt_id in others]
    heap = [rig.facts(attempt_id).claimed_at for attempt_id in range(1, HEAP + 1)]
    for alone, at in enumerate(claimed):
        assert at is not None
        before = sum(other < at for other in (*claimed, *heap) if other is not None)
        # Alone, each of them would have had `alone` attempts before it.
        assert before <= 2 * alone + 1
