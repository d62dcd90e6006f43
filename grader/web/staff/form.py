"""What a form sent, field by field, with an error beside each field that cannot be used.

Times are of the zone that the fields' labels name. A form never raises for what somebody typed: it is shown again.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, tzinfo
from typing import Annotated

from fastapi import Depends, Request
from starlette.datastructures import UploadFile

from grader.translation import gettext

MAX_TEXT = 4000


@dataclass
class SubmittedForm:
    """A form's texts and what is wrong with them, by field."""

    values: dict[str, list[str]]
    files: dict[str, UploadFile]
    errors: dict[str, str] = field(default_factory=dict)

    @property
    def good(self) -> bool:
        """Whether everything that was asked for so far can be used."""
        return not self.errors

    def text(self, name: str, *, most: int = MAX_TEXT) -> str:
        """A text, "" where there is none, cut where it is far too long."""
        return self.values.get(name, [""])[0].strip()[:most]

    def texts(self, name: str) -> list[str]:
        """All values of that name."""
        return self.values.get(name, [])

    def ticked(self, name: str) -> bool:
        """Whether a box is ticked."""
        return name in self.values

    def needed(self, name: str, what: str) -> str:
        """A text that must not be empty; `what` it is, in the reader's language."""
        found = self.text(name)
        if not found:
            self.errors[name] = gettext("{what} is needed.").format(what=what)
        return found

    def number(self, name: str, *, least: float, most: float, whole: bool = False) -> float | None:
        """A number within bounds, None where the field is empty."""
        found = self.text(name, most=40).replace(",", ".")
        if not found:
            return None
        try:
            value = float(found)
        except ValueError:
            value = float("nan")
        if not least <= value <= most or (whole and not value.is_integer()):
            told = (
                gettext("Write a whole number from {least} to {most}.")
                if whole
                else gettext("Write a number from {least} to {most}.")
            )
            self.errors[name] = told.format(least=f"{least:g}", most=f"{most:g}")
            return None
        return value

    def whole(self, name: str, *, least: int, most: int) -> int | None:
        """A whole number within bounds, None where the field is empty."""
        found = self.number(name, least=least, most=most, whole=True)
        return None if found is None else int(found)

    def time(self, name: str, zone: tzinfo = UTC) -> datetime | None:
        """A moment of that zone, as `datetime-local` fields send it, in UTC; None where the field is empty.

        Of an hour that clocks go through twice the first is meant; one that they leave out is a mistake.
        """
        found = self.text(name, most=40)
        if not found:
            return None
        try:
            at = datetime.fromisoformat(found)
        except ValueError:
            at = None
        if at is None or not 2000 <= at.year <= 2200:
            self.errors[name] = gettext("Write a date and a time, such as 2026-03-31 18:00.")
            return None
        if at.tzinfo is not None:
            return at.astimezone(UTC)
        meant = at.replace(tzinfo=zone).astimezone(UTC)
        if meant.astimezone(zone).replace(tzinfo=None) != at:
            self.errors[name] = gettext(
                "Clocks are put forward past this hour on that day. Write another one."
            )
            return None
        return meant

    def one_of(self, name: str, choices: Sequence[str]) -> str:
        """One of these choices, the first where something else was sent."""
        found = self.text(name)
        if found not in choices:
            self.errors[name] = gettext("Choose one of these.")
            return choices[0]
        return found

    def ids(self, name: str) -> list[int]:
        """Numbers of things that were ticked; what is no number is left out."""
        return [int(one) for one in self.texts(name) if one.isascii() and one.isdigit() and len(one) < 19]


async def submitted_form(request: Request) -> AsyncGenerator[SubmittedForm]:
    """The form of this request; its files are closed when the request is over."""
    form = await request.form()
    values: dict[str, list[str]] = {}
    files: dict[str, UploadFile] = {}
    for name, value in form.multi_items():
        if isinstance(value, str):
            values.setdefault(name, []).append(value)
        else:
            files[name] = value
    try:
        yield SubmittedForm(values, files)
    finally:
        await form.close()


FormDep = Annotated[SubmittedForm, Depends(submitted_form)]


def local_field(at: datetime | None, zone: tzinfo = UTC) -> str:
    """A moment as a `datetime-local` field of that zone holds it."""
    return "" if at is None else at.astimezone(zone).strftime("%Y-%m-%dT%H:%M")
