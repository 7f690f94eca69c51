"""HTML and SVG as text: whatever is not markup already is escaped."""

import html

_VOID = {"meta"}
_FEW_COLUMNS = 4  # so many fit on a telephone


class Html(str):
    """Text that is markup already."""

    __slots__ = ()


def tag(name: str, /, *content: str, **attributes: str | float | None) -> Html:
    """Return an element; `class_` is `class`, `aria_label` is `aria-label`, None leaves out."""
    written = "".join(_attribute(key, value) for key, value in attributes.items())
    if name in _VOID:
        return Html(f"<{name}{written}>")
    return Html(f"<{name}{written}>{joined(content)}</{name}>")


def joined(parts: "list[str] | tuple[str, ...]") -> Html:
    """Return parts one after another, those that are plain text escaped."""
    return Html("".join(p if isinstance(p, Html) else html.escape(p) for p in parts))


def table(
    caption: str, head: list[str], rows: list[list[str]], foot: list[str] | None = None
) -> Html:
    """Return a table that scrolls inside itself; columns whose name ends in `>` align right."""
    classes = ["number" if name.endswith(">") else None for name in head]
    names = [name.removesuffix(">") for name in head]
    body = [tag("tr", *_cells("td", row, classes)) for row in rows]
    parts = [
        tag("caption", caption),
        tag("thead", tag("tr", *_cells("th", names, classes, scope="col"))),
        tag("tbody", *body),
    ]
    if foot is not None:
        parts.append(tag("tfoot", tag("tr", *_cells("td", foot, classes))))
    whole = tag("table", *parts, class_="broad" if len(head) > _FEW_COLUMNS else None)
    return tag("div", whole, class_="scroll", role="region", aria_label=caption, tabindex="0")


def items(texts: list[str], class_: str | None = None) -> Html:
    """Return a list with one entry for each text."""
    return tag("ul", *(tag("li", text) for text in texts), class_=class_)


def _cells(
    name: str, texts: list[str], classes: list[str | None], scope: str | None = None
) -> list[Html]:
    pairs = zip(texts, classes, strict=True)
    return [tag(name, text, class_=class_, scope=scope) for text, class_ in pairs]


def _attribute(name: str, value: str | float | None) -> str:
    if value is None:
        return ""
    text = value if isinstance(value, str) else f"{value:.2f}".rstrip("0").rstrip(".")
    return f' {name.rstrip("_").replace("_", "-")}="{html.escape(text)}"'
