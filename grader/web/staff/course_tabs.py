"""The tabs of a course's pages as its staff see them: its parts, and the pages of the part in which one stands.

Which page lies where is said here alone, so that the same row in the same words stands on all of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True)
class CourseTab:
    """One tab.

    Attributes:
        text: what it is called.
        url: where it leads.
        current: "page" where it leads to this page, "true" where this page lies below it, "" elsewhere: `aria-current`.
    """

    text: str
    url: str
    current: str


# Part of a course → its pages: what each is called, and where it and what lies below it is found. The part leads to
# the first.
_READERS: Final = {
    "Tasks": (("Tasks", ("",)),),
    "Announcements": (("Announcements", ("announcements",)),),
    "Gradebook": (("Grades", ("gradebook",)),),
    "Attempts": (("All attempts", ("attempts",)),),
    "Review": (("Review", ("review",)),),
    "Checks": (("Checks", ("checks",)),),
    "Stuck": (("Stuck", ("stuck",)),),
    "People": (("Everybody", ("people",)),),
}
_INSTRUCTORS: Final = {
    **_READERS,
    "Gradebook": (
        ("Grades", ("gradebook",)),
        ("Exports", ("exports",)),
        ("Certificates", ("certificates",)),
    ),
    "Attempts": (("All attempts", ("attempts",)), ("Regrades", ("regrades",))),
    "People": (
        ("Everybody", ("people",)),
        ("Import a list", ("people/import", "people/imports")),
        ("Invitations", ("invitations",)),
        ("Groups", ("groups",)),
        ("Extensions", ("extensions",)),
    ),
    "Similarity": (("Similarity", ("similarity",)),),
    "Settings": (
        ("Tasks and dates", ("settings", "exams")),
        ("Title and text", ("words",)),
        ("Grading", ("grading",)),
        ("Comment library", ("library",)),
        ("Learning platform", ("platform",)),
        ("Webhooks", ("webhooks",)),
        ("Audit log", ("audit",)),
        ("Retention", ("retention",)),
        ("Copy", ("copy",)),
    ),
}


def course_tabs(
    course_id: int, path: str, *, teaches: bool
) -> tuple[tuple[CourseTab, ...], str, tuple[CourseTab, ...]]:
    """The parts of a course; the part in which the page at `path` lies, and its pages (none where it is one alone)."""
    parts = _INSTRUCTORS if teaches else _READERS
    place = path.removeprefix(f"/courses/{course_id}").strip("/")
    lies_in = {page: _depth(place, places) for pages in parts.values() for page, places in pages}
    here = max(lies_in, key=lambda page: lies_in[page])
    part = next(name for name, pages in parts.items() if here in dict(pages))

    def tab(text: str, at: str, is_here: bool) -> CourseTab:
        return CourseTab(
            text, f"/courses/{course_id}/{at}".rstrip("/"), ("page" if place == at else "true") * is_here
        )

    main = tuple(tab(name, pages[0][1][0], name == part) for name, pages in parts.items())
    pages = tuple(tab(page, places[0], page == here) for page, places in parts[part])
    return main, part, pages if len(pages) > 1 else ()


def _depth(place: str, places: tuple[str, ...]) -> int:
    """How much of the place the longest of the places holds; -1 for none."""
    return max((len(one) for one in places if one == place or f"{place}/".startswith(f"{one}/")), default=-1)
