"""Articles with annotated sections."""

from capr.documents import Annotation, Document, Span

FILLER = "This sentence only makes the passage long enough to be of use."


def article(title: str, sections: dict[str, str]) -> Document:
    """Return an article with the given text under each heading."""
    text, annotations = "", []
    for heading, body in sections.items():
        begin = len(text)
        text += f"{heading}\n{body} {FILLER}\n\n"
        value = {"heading": heading, "heading_end": begin + len(heading)}
        annotations.append(Annotation("section", Span(begin, len(text)), value))
    return Document(title, text, title, {}, tuple(annotations))
