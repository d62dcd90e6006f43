"""What every fault must leave behind: each attempt judged once, its last claim the only one that was heard."""

from __future__ import annotations

from sqlalchemy import func, select

from grader.store.tables import AttemptRow, GradeRow
from grader.store.tables.attempt import AttemptState
from tests.worker.rig import Rig


def assert_judged_once(rig: Rig, attempt_ids: list[int]) -> None:
    """Each has one grade and one `judged` event, and that is its last."""
    for attempt_id in attempt_ids:
        facts = rig.facts(attempt_id)
        assert facts.state is AttemptState.JUDGED, facts
        kinds = [one.kind for one in rig.events(attempt_id)]
        assert kinds.count("judged") == 1, kinds
        assert kinds[-1] == "judged", kinds
    with rig.store.read() as connection:
        number = connection.execute(select(func.count()).select_from(GradeRow)).scalar_one()
        judged = connection.execute(
            select(func.count()).select_from(AttemptRow).where(AttemptRow.state == AttemptState.JUDGED)
        ).scalar_one()
    assert number == judged
