"""The tabs of a course's pages as its staff see them: its parts, and the pages of the part in which one stands.

Which page lies where is said here alone, so that the same row in the same words stands on all of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from grader.translation import N_, gettext


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
    N_("Tasks"): (("Tasks", ("",)),),
    N_("Announcements"): (("Announcements", ("announcements",)),),
    N_("Gradebook"): ((N_("Grades"), ("gradebook",)),),
    N_("Attempts"): ((N_("All attempts"), ("attempts",)),),
    N_("Review"): (("Review", ("review",)),),
    N_("Checks"): (("Checks", ("checks",)),),
    N_("Stuck"): (("Stuck", ("stuck",)),),
    N_("People"): ((N_("Everybody"), ("people",)),),
}
_INSTRUCTORS: Final = {
    **_READERS,
    "Gradebook": (
        ("Grades", ("gradebook",)),
        (N_("Exports"), ("exports",)),
        (N_("Certificates"), ("certificates",)),
    ),
    "Attempts": (("All attempts", ("attempts",)), (N_("Regrades"), ("regrades",))),
    "People": (
        ("Everybody", ("people",)),
        (N_("Import a list"), ("people/import", "people/imports")),
        (N_("Invitations"), ("invitations",)),
        (N_("Groups"), ("groups",)),
        (N_("Extensions"), ("extensions",)),
    ),
    N_("Similarity"): (("Similarity", ("similarity",)),),
    N_("Settings"): (
        (N_("Tasks and dates"), ("settings", "exams")),
        (N_("Title and text"), ("words",)),
        (N_("Grading"), ("grading",)),
        (N_("Comment library"), ("library",)),
        (N_("Learning platform"), ("platform",)),
        (N_("Webhooks"), ("webhooks",)),
        (N_("Audit log"), ("audit",)),
        (N_("Retention"), ("retention",)),
        (N_("Copy"), ("copy",)),
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
            gettext(text),
            f"/courses/{course_id}/{at}".rstrip("/"),
            ("page" if place == at else "true") * is_here,
        )

    main = tuple(tab(name, pages[0][1][0], name == part) for name, pages in parts.items())
    pages = tuple(tab(page, places[0], page == here) for page, places in parts[part])
    return main, gettext(part), pages if len(pages) > 1 else ()


def _depth(place: str, places: tuple[str, ...]) -> int:
    """How much of the place the longest of the places holds; -1 for none."""
    return max((len(one) for one in places if one == place or f"{place}/".startswith(f"{one}/")), default=-1)
