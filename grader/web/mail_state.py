"""Why nobody is mailed just now, in the reader's language."""

from __future__ import annotations

from grader.store.database import Store
from grader.store.delivery.delivery_channels import mail_problem
from grader.translation import N_, gettext

# As the store says it.
_PROBLEMS = (
    N_("This site sends no mail: whoever runs it has not set it up."),
    N_("Mail waits just now: the mail server does not take it. It is sent once it does."),
)


def mail_problem_text(store: Store) -> str:
    """A sentence; "": all is well."""
    return gettext(mail_problem(store))
