"""Reads HTML as a browser would, far enough to see which elements there are."""

from __future__ import annotations

from html.parser import HTMLParser


class _Elements(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.found: list[tuple[str, dict[str, str]]] = []
        self.text: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, {name: value or "" for name, value in attrs}))

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def elements_of(html: str) -> list[tuple[str, dict[str, str]]]:
    """Return the name and the attributes of every element, in order."""
    return _read(html).found


def text_of(html: str) -> str:
    """Return what a reader sees."""
    return "".join(_read(html).text)


def _read(html: str) -> _Elements:
    parser = _Elements()
    parser.feed(html)
    parser.close()
    return parser
