"""What a page says, by the classes of its elements."""

from __future__ import annotations

from dataclasses import dataclass, field
from html.parser import HTMLParser

_VOID = {"meta", "img", "link", "base", "br", "hr", "input", "embed", "source"}


@dataclass
class Element:
    """One element with all its text."""

    tag: str
    attributes: dict[str, str]
    parents: tuple[Element, ...] = field(repr=False)
    text: str = ""

    @property
    def classes(self) -> set[str]:
        return set(self.attributes.get("class", "").split())


class Look(HTMLParser):
    """The elements of a page in order."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.page = page
        self.elements: list[Element] = []
        self._open: list[Element] = []
        self.feed(page)
        self.close()

    def find(self, *classes: str, within: Element | None = None) -> list[Element]:
        """The elements that have all of *classes*, and are in the element *within* if it is given."""
        return [
            each
            for each in self.elements
            if {*classes} <= each.classes and (within is None or any(within is parent for parent in each.parents))
        ]

    def texts(self, *classes: str, within: Element | None = None) -> list[str]:
        """The texts of these elements, with white space as a browser shows it."""
        return [" ".join(each.text.split()) for each in self.find(*classes, within=within)]

    @property
    def tags(self) -> set[str]:
        return {each.tag for each in self.elements}

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        element = Element(tag, {name: value or "" for name, value in attrs}, tuple(self._open))
        self.elements.append(element)
        if tag not in _VOID:
            self._open.append(element)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in _VOID:
            self.handle_endtag(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag in [each.tag for each in self._open]:
            while self._open.pop().tag != tag:
                pass

    def handle_data(self, data: str) -> None:
        for element in self._open:
            element.text += data
