"""The whole of a page: no script, no font and no picture from outside."""

from importlib import resources

from spotwright.adapters.report.markup import Html, tag

_NOTHING_FROM_OUTSIDE = "default-src 'none'; style-src 'unsafe-inline'"


def document(title: str, body: Html) -> str:
    """Return a page around its main part."""
    return f"<!DOCTYPE html>\n{tag('html', _head(title), tag('body', body), lang='en')}\n"


def _head(title: str) -> Html:
    style = resources.files("spotwright.adapters.report").joinpath("style.css")
    return tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=_NOTHING_FROM_OUTSIDE),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("title", title),
        tag("style", Html(style.read_text(encoding="utf-8"))),
    )
