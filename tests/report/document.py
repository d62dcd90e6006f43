"""A report as a parser sees it: elements with attributes and text, for tests that look at structure."""

from __future__ import annotations

from dataclasses import dataclass, field
from html.parser import HTMLParser

_VOID = {"meta", "br", "link", "img", "input", "hr"}


@dataclass
class Element:
    tag: str
    attributes: dict[str, str]
    parent: Element | None = None
    parts: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        return "".join(self.parts)

    def inside(self, tag: str) -> bool:
        place = self.parent
        while place is not None:
            if place.tag == tag:
                return True
            place = place.parent
        return False


class Document(HTMLParser):
    """All elements in order; an element's text includes that of the elements below it."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[Element] = []
        self.unbalanced: list[str] = []
        self._open: list[Element] = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        element = Element(tag, {k: v or "" for k, v in attrs}, self._open[-1] if self._open else None)
        self.elements.append(element)
        if tag not in _VOID:
            self._open.append(element)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append(
            Element(tag, {k: v or "" for k, v in attrs}, self._open[-1] if self._open else None)
        )

    def handle_endtag(self, tag: str) -> None:
        if not self._open or self._open[-1].tag != tag:
            self.unbalanced.append(tag)
            return
        self._open.pop()

    def handle_data(self, data: str) -> None:
        for element in self._open:
            element.parts.append(data)

    def all(self, tag: str, **attributes: str) -> list[Element]:
        wanted = {name.rstrip("_"): value for name, value in attributes.items()}
        return [
            e
            for e in self.elements
            if e.tag == tag
            and all(value in e.attributes.get(name, "").split() for name, value in wanted.items())
        ]

    def by_id(self, name: str) -> Element:
        (element,) = [e for e in self.elements if e.attributes.get("id") == name]
        return element
