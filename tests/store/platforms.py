"""A learning platform's course that is connected to one of ours, for tests that need no platform to talk to."""

from __future__ import annotations

from grader.store.database import Store
from grader.store.lti import lti_contexts, lti_platforms
from grader.store.lti.lti_contexts import ContextFacts, PlatformContext
from grader.store.lti.lti_platforms import PlatformTerms
from grader.store.lti.lti_scores import SCORE_SCOPE

_AT = "https://moodle.example"
TERMS = PlatformTerms("Moodle", _AT, "client", f"{_AT}/auth", f"{_AT}/token", f"{_AT}/keys")


def connected(store: Store, course_id: int, actor_id: int) -> PlatformContext:
    """It takes grades; nobody came by it yet."""
    known = lti_platforms.add_platform(store, TERMS, actor_id=None)
    facts = ContextFacts(known, "1", "7", "Course", "https://m.example/people", None, (SCORE_SCOPE,))
    lti_contexts.connect(store, facts, course_id, actor_id=actor_id)
    (made,) = lti_contexts.contexts_of(store, course_id)
    return made
