"""What the API says of exams."""

from __future__ import annotations

from datetime import datetime

from grader.web.documents.document import Document


class ExamOut(Document):
    """An exam as its caller has it: `minutes` of their own from `begun_at` on, and `closes_at` at the latest.

    `begun_at`, `ends_at` null: not begun.
    """

    minutes: int
    begun_at: datetime | None
    ends_at: datetime | None
    closes_at: datetime
