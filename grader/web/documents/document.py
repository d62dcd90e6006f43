"""What all documents have in common: keys that are not named are refused, and so is what is no text."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, field_validator

from grader.store.tables.base import storable


class Document(BaseModel):
    """Base of all: extra keys are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Received(Document):
    """Base of what programs send: texts hold text, and nothing that a database would not keep."""

    @field_validator("*")
    @classmethod
    def _is_text(cls, value: object) -> object:
        if isinstance(value, str) and storable(value) != value:
            raise ValueError("holds a character that no text has")
        return value
