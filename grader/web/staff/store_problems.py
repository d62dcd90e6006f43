"""What the store refuses, in the reader's language, as far as people meet it on pages; anything else as it is told."""

from __future__ import annotations

import re

from grader.errors import UsageError
from grader.translation import N_, gettext

TEXTS = (
    N_("a decision needs a reply, which the learner reads"),
    N_("a group needs a name"),
    N_("an address looks like https://host/path"),
    N_("an address without a password and without a #fragment, please"),
    N_("an answer needs a text"),
    N_("no group of this course has that code"),
    N_("no question waits for an answer"),
    N_("none of these attempts has ended and still has its scripts: nothing can be judged again"),
    N_("say what should be looked at, and why"),
    N_("somebody else is seen under that name"),
    N_("the forum is an address that begins with https://"),
    N_("the groups of this course are made by its instructors"),
    N_("the rubric of this attempt has no such item"),
    N_("the time in which you could ask about this attempt is over"),
    N_("there is no such comment any more"),
    N_("there is no such comment in the library"),
    N_("there is no such group, or they do not learn in this course"),
    N_("there is no such invitation"),
    N_("this attempt has no grade yet whose points a comment could change"),
    N_("this course takes no such requests"),
    N_("this request was decided meanwhile"),
    N_("this site sends no mail: whoever runs it sets it up"),
    N_("you are in a group already; leave it first"),
    N_("you have asked already, and nobody has decided yet"),
)
FILLED = (
    N_("at most {most} characters, please"),
    N_("there is a group named {name} already"),
    N_("this group is full: there are at most {most} in one"),
)
"""Those with something put into them."""


def problem_text(error: UsageError) -> str:
    """What the store says."""
    told = f"{error}"
    for text in FILLED:
        pattern = re.sub(r"\\{(\w+)\\}", r"(?P<\1>.+)", re.escape(text))
        if (found := re.fullmatch(pattern, told)) is not None:
            return gettext(text).format(**found.groupdict())
    return gettext(told)
