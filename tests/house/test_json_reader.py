"""What was stored is read back as it was, or refused with the place and what is wrong there."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any

import pytest

from grader.json_reader import read_json, read_value


class Colour(StrEnum):
    RED = "red"


@dataclass(frozen=True, slots=True)
class Part:
    name: str
    weights: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Whole:
    number: int
    colour: Colour
    parts: tuple[Part, ...]
    pairs: tuple[tuple[str, str], ...] = ()
    best: Part | None = None
    facts: dict[str, Any] = field(default_factory=dict)
    shares: dict[str, float] = field(default_factory=dict)
    late: bool = False


PART = Part("a", (0.1, 2.0))
WHOLE = Whole(
    3, Colour.RED, (PART,), (("x", "y"),), PART, {"any": [1, None, {"thing": 0.5}]}, {"s": 1.0}, True
)
FIELDS: dict[str, Any] = json.loads(json.dumps(asdict(WHOLE)))


def test_what_was_stored_is_read_back() -> None:
    assert read_json(Whole, json.dumps(asdict(WHOLE))) == WHOLE
    assert read_value(tuple[Whole, ...], [FIELDS, FIELDS]) == (WHOLE, WHOLE)


def test_what_came_later_may_be_missing() -> None:
    assert read_json(Whole, '{"number": 3, "colour": "red", "parts": []}') == Whole(3, Colour.RED, ())


def test_a_whole_number_may_stand_for_a_float_and_becomes_one() -> None:
    (weight,) = read_json(Part, '{"name": "a", "weights": [7]}').weights
    assert isinstance(weight, float)


def test_a_lone_surrogate_does_not_make_the_rest_unreadable() -> None:
    assert read_json(Part, r'{"name": "a\udcff\ud83d\ude00", "weights": []}') == Part("a?\U0001f600", ())


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"number": "3"}, "number is refused: Input should be a valid integer"),
        ({"number": True}, "number is refused: Input should be a valid integer"),
        ({"number": 3.0}, "number is refused: Input should be a valid integer"),
        ({"late": 1}, "late is refused: Input should be a valid boolean"),
        ({"colour": "blue"}, "colour is refused: Input should be 'red'"),
        ({"parts": {"0": {}}}, "parts is refused: Input should be a valid array"),
        ({"parts": [asdict(PART), {"name": "b"}]}, "parts[1].weights is missing"),
        ({"parts": [{"name": 1, "weights": []}]}, "parts[0].name is refused: Input should be a valid string"),
        ({"best": {"name": "a", "weights": [], "more": 1}}, "best.more does not belong here"),
        ({"shares": {"s": "1"}}, "shares.s is refused: Input should be a valid number"),
        ({"verdict": "accepted"}, "verdict does not belong here"),
    ],
)
def test_what_does_not_fit_is_refused_with_its_place(change: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError) as raised:  # noqa: PT011  its text is compared below
        read_json(Whole, json.dumps(FIELDS | change))
    assert str(raised.value) == said


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999"])
@pytest.mark.parametrize("place", ['"shares": {"s": %s}', '"facts": {"any": [%s]}'])
def test_no_number_is_infinite_or_none_at_all(place: str, number: str) -> None:
    text = '{"number": 3, "colour": "red", "parts": [], ' + place % number + "}"
    with pytest.raises(ValueError, match="it holds NaN or an infinity"):
        read_json(Whole, text)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "Expecting value"),
        ("{", "Expecting property name"),
        ("[]", "all of it is refused: Input should be an object"),
        ("[" * 100_000, "nested too deeply"),
        ('{"a":' * 500 + "1" + "}" * 500, "does not belong here|recursion"),
    ],
)
def test_a_text_that_holds_no_such_thing_is_refused(text: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        read_json(Whole, text)
