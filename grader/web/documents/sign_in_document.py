"""The API's document of how people sign in, for programs that ask somebody to."""

from __future__ import annotations

from grader.web.documents.document import Document


class SignInOut(Document):
    """Whether passwords of the service open anything, and the titles of others that vouch for people in a browser."""

    passwords: bool
    providers: list[str]
