r"""HL7 v2 messages: the report texts in the OBX segments of MDM and ORU (and of any other message that has them).

Files may hold any number of messages, with `\r`, `\n` or `\r\n` after each segment, batch headers and MLLP framing.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from capr.documents.attachment import decode
from capr.documents.dates import iso_date
from capr.documents.document import Annotation, Document, Span
from capr.documents.format import Format, Records
from capr.documents.problem import Notice, Problem
from capr.documents.source import Source

SEGMENT = re.compile(r"[A-Z][A-Z0-9]{2}")
ESCAPE = re.compile(r"\\([^\\]*)\\")
BATCH = ("FHS", "BHS", "BTS", "FTS")
TEXT_TYPES = ("TX", "FT", "ST", "CE", "CWE", "")
SEGMENT_FIX = r"begin each line with its segment, such as OBX|; a line break inside a text is written \.br\ "


class Segment:
    """One line of a message; fields and components are counted from 1, as the standard does."""

    def __init__(self, line: str, number: int, separator: str, encoding: str) -> None:
        self.name, self.line = line[:3], number
        self.component_separator, self.repetition, self.escape = encoding[0], encoding[1], encoding[2]
        self.fields = line.split(separator)
        if self.name in ("MSH", *BATCH):  # the separator itself is their first field
            self.fields.insert(1, separator)

    def field(self, number: int) -> str:
        """A field as it stands, or an empty string."""
        return self.fields[number] if number < len(self.fields) else ""

    def component(self, number: int, component: int = 1) -> str:
        """One component of the first repetition of a field, its escapes resolved."""
        parts = self.field(number).split(self.repetition)[0].split(self.component_separator)
        return self.unescape(parts[component - 1]) if component <= len(parts) else ""

    def unescape(self, text: str) -> str:
        """What a receiver shows for the escape sequences; one that the standard does not know stays as it is."""
        if self.escape not in text:
            return text
        delimiters = {
            "F": "|",
            "S": self.component_separator,
            "T": "&",
            "R": self.repetition,
            "E": self.escape,
        }
        delimiters |= {"H": "", "N": "", ".br": "\n", ".nf": "", ".fi": "", ".ce": "\n"}

        def resolve(match: re.Match[str]) -> str:
            code = match[1]
            if code in delimiters:
                return delimiters[code]
            if spaced := re.fullmatch(r"\.sp\s*\+?(\d*)", code):
                return "\n" * int(spaced[1] or 1)
            if re.fullmatch(r"\.(in|ti|sk)\s*[+-]?\d*", code):
                return ""
            if re.fullmatch(r"X(?:[0-9A-Fa-f]{2})+", code):
                return bytes.fromhex(code[1:]).decode("cp1252", "replace")
            return match[0]

        pattern = (
            ESCAPE
            if self.escape == "\\"
            else re.compile(ESCAPE.pattern.replace(r"\\", re.escape(self.escape)))
        )
        return pattern.sub(resolve, text)


@dataclass
class Report:
    """A document in the making: the texts under one TXA or OBR."""

    id: str = ""
    metadata: dict[str, str] = field(default_factory=dict)
    texts: list[tuple[str, str]] = field(default_factory=list)  # (name of the observation, text)
    sections: tuple[Annotation, ...] = ()

    def document(self, fallback_id: str) -> Document:
        """The texts on lines of their own; observations with different names are sections."""
        several = len({name for name, _ in self.texts}) > 1
        annotations: list[Annotation] = []
        begin = 0
        for name, text in self.texts:
            end = begin + len(text)
            if several and annotations and annotations[-1].value["heading"] == name:
                annotations[-1] = Annotation(
                    "section", Span(annotations[-1].span.begin, end), {"heading": name}
                )
            elif several:
                annotations.append(Annotation("section", Span(begin, end), {"heading": name}))
            begin = end + 1
        text = "\n".join(text for _, text in self.texts)
        kept: dict[str, Any] = {name: value for name, value in self.metadata.items() if value}
        return Document(
            self.id or fallback_id,
            text,
            self.metadata.get("type", ""),
            kept,
            tuple(annotations) or (self.sections if len(self.texts) == 1 else ()),
        )


def read(source: Source) -> Records:
    """One document per TXA (MDM) or per OBR (ORU) that has text."""
    without_text: Counter[str] = Counter()
    for item in _messages(source):
        if isinstance(item, Problem):
            yield item
        else:
            yield from _documents(*item, source, without_text)
    if without_text:
        listed = ", ".join(f"{count} {kind}" for kind, count in sorted(without_text.items()))
        yield Notice(
            f"values and messages without text were passed over: {listed}", "only the texts of OBX are read"
        )


def _messages(source: Source) -> Iterator[tuple[int, list[Segment]] | Problem]:
    """Each message with its number; a line that is no segment is a problem of its own."""
    message: list[Segment] = []
    number = 0
    separator, encoding = "|", "^~\\&"
    for line in source.lines():
        line = line.strip("\r\n\x0b\x1c")
        if not line.strip():
            continue
        if not SEGMENT.match(line) or (len(line) > 3 and line[3] != separator and not line.startswith("MSH")):
            yield Problem(
                f"the line has no segment type: {line[:50]!r}", SEGMENT_FIX.strip(), line=source.line
            )
            continue
        if line[:3] == "MSH" or line[:3] in BATCH:
            if message:
                yield number, message
            message = []
            if line[:3] in BATCH:
                continue
            if len(line) < 8 or line[3].isalnum():
                fix = r"begin the message with its separators: MSH|^~\&|"
                yield Problem(f"the MSH segment has no separators: {line[:50]!r}", fix, line=source.line)
                continue
            separator, encoding = line[3], line[4:8]
            number += 1
        elif not message:
            fix = "begin each message with its MSH segment"
            yield Problem(f"the segment {line[:3]} belongs to no message", fix, line=source.line)
            continue
        message.append(Segment(line, source.line, separator, encoding))
    if message:
        yield number, message


def _documents(number: int, segments: list[Segment], source: Source, without_text: Counter[str]) -> Records:
    header = segments[0]
    kind = "^".join(filter(None, (header.component(9, 1), header.component(9, 2)))) or "message"
    common = {"message": kind, "sending_facility": header.component(4)}
    reports = [Report(metadata={**common, "date": iso_date(header.component(7))})]
    one_report = any(segment.name == "TXA" for segment in segments)
    problems: list[Problem] = []
    for segment in segments:
        if segment.name == "PID":
            name = " ".join(filter(None, (segment.component(5, 2), segment.component(5, 1))))
            common |= {"patient": segment.component(3) or segment.component(2), "patient_name": name}
            common |= {"birth_date": iso_date(segment.component(7)), "sex": segment.component(8)}
            reports[-1].metadata |= common
        elif segment.name == "TXA":
            date = segment.component(4) or segment.component(6) or header.component(7)
            reports[-1].id = segment.component(12) or segment.component(12, 3)
            reports[-1].metadata |= {"type": segment.component(2), "date": iso_date(date)}
        elif segment.name == "OBR":
            if not one_report and reports[-1].texts:
                reports.append(Report(metadata=dict(common)))
            date = segment.component(7) or segment.component(22) or header.component(7)
            report_type = segment.component(4, 2) or segment.component(4)
            reports[-1].id = reports[-1].id or segment.component(3) or segment.component(2)
            reports[-1].metadata = {"type": report_type, "date": iso_date(date)} | reports[-1].metadata
            if not one_report:
                reports[-1].metadata |= {"type": report_type, "date": iso_date(date)}
        elif segment.name == "OBX":
            problem = _add_text(segment, reports[-1], without_text)
            if problem is not None:
                problems.append(Problem(problem.fact, problem.fix, line=segment.line, record=number))
    yield from problems
    with_text = [report for report in reports if report.texts]
    if not with_text and not problems:
        without_text[f"{kind} without text"] += 1
    control_id = header.component(10) or source.document_id(number)
    for i, report in enumerate(with_text, 1):
        yield report.document(control_id if len(with_text) == 1 else f"{control_id}#{i}")


def _add_text(segment: Segment, report: Report, without_text: Counter[str]) -> Problem | None:
    value_type, value = segment.component(2), segment.field(5)
    name = segment.component(3, 2) or segment.component(3)
    if value_type == "RP":
        fact = f"the text is only referred to, by {segment.component(5)!r}"
        return Problem(fact, "send the document itself in the OBX, as FT, TX or ED")
    if value_type == "ED":
        parts = value.split(segment.component_separator)
        mime = "/".join(segment.component(5, part).lower() for part in (2, 3))
        mime = {"text/": "text/plain", "text/plain": "text/plain", "/": ""}.get(mime, mime)
        if "pdf" in mime:
            mime = "application/pdf"
        result = decode(parts[4] if len(parts) > 4 else "", mime)
        if isinstance(result, Problem):
            return result
        report.texts.append((name, result[0]))
        report.sections = result[1]
    elif value_type in TEXT_TYPES:
        repetitions = value.split(segment.repetition)
        if value_type in ("CE", "CWE"):
            texts = [segment.component(5, 2) or segment.component(5)]
        else:
            texts = [segment.unescape(repetition) for repetition in repetitions]
        report.texts.append((name, "\n".join(texts)))
    else:
        without_text[f"{value_type} value{'' if value_type.endswith('s') else 's'}"] += 1
    return None


def recognises(name: str, head: str) -> bool:
    start = head.lstrip("\x0b\r\n ")
    return re.match(r"(?:MSH|FHS|BHS)[^A-Za-z0-9\s]", start) is not None or name.endswith(".hl7")


FORMAT = Format("hl7", "HL7 v2 messages: the OBX texts of MDM and ORU", recognises, read)
