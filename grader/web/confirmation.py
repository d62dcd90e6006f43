"""Asking before something is done that cannot be taken back, or costs somebody something: one page, without any script.

A route that finds no consent in the form answers with the page, which sends the same form to the same address again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from fastapi import Request
from starlette.responses import HTMLResponse

from grader.web.security.csrf import FIELD
from grader.web.service import WebService
from grader.web.staff.form import SubmittedForm

_CONSENT = "confirmed"


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked.

    Attributes:
        title: the question; text: what a yes means, in a sentence or two.
        yes, no: the words of the two buttons ("" for a no: to go back); back: where a no leads.
        fields: what the form held besides, to be sent again.
    """

    title: str
    text: str
    yes: str
    back: str
    no: str = ""
    fields: Mapping[str, Sequence[str]] = field(default_factory=dict)


def is_confirmed(form: SubmittedForm) -> bool:
    """Whether the question was answered with yes."""
    return form.text(_CONSENT) == "yes"


def ask_first(service: WebService, request: Request, visitor: Any, question: Question) -> HTMLResponse:
    """The page with the question."""
    # The forgery token is written anew.
    sent = {name: values for name, values in question.fields.items() if name not in (FIELD, _CONSENT)}
    return service.render(
        request, "confirm.html.j2", visitor=visitor, question=question, consent=_CONSENT, sent=sent
    )
