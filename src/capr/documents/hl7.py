r"""HL7 v2 messages: the report texts in the OBX segments of MDM and ORU (and of any other message that has them).

Files may hold any number of messages, with `\r`, `\n` or `\r\n` after each segment, batch headers and MLLP framing.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import Any

from capr.documents.attachment import Extracted, decode, extract
from capr.documents.dates import iso_date
from capr.documents.document import Annotation, Document
from capr.documents.format import Format, Records
from capr.documents.outline import joined
from capr.documents.problem import Notice, Problem
from capr.documents.source import Source

SEGMENT = re.compile(r"[A-Z][A-Z0-9]{2}")
HEADER = re.compile(r"(?:MSH|FHS|BHS)([^A-Za-z0-9\s])[^A-Za-z0-9\s]{3,5}\1")
ESCAPE = (
    r"{0}(F|S|T|R|E|H|N|\.br|\.nf|\.fi|\.ce|\.sp\s*\+?\d{{0,2}}|\.sk\s*\+?\d{{0,2}}"
    r"|\.(?:in|ti)\s*[+-]?\d{{0,3}}|X(?:[0-9A-Fa-f]{{2}})+){0}"
)
NULL = '""'  # HL7's way to say that there is no value
DELETED = ("D", "W", "X")  # OBX-11: deleted, wrong, cannot be obtained
BATCH = ("FHS", "BHS", "BTS", "FTS")
TEXT_TYPES = ("TX", "FT", "ST", "CE", "CWE", "")
SEGMENT_FIX = r"begin each line with its segment, such as OBX|, and write a line break inside a text as \.br\ "


class Segment:
    """One line of a message; fields and components are counted from 1, as the standard does."""

    def __init__(self, line: str, number: int, separator: str, encoding: str) -> None:
        self.name, self.line = line[:3], number
        self.component_separator, self.repetition = encoding[0], encoding[1]
        self.escape, self.subcomponent = encoding[2], encoding[3:4] or "&"
        self.separator = separator
        self.fields = line.split(separator)
        if self.name == "MSH":  # the separator itself is its first field
            self.fields.insert(1, separator)

    def field(self, number: int) -> str:
        """A field as it stands, or an empty string."""
        return self.fields[number] if number < len(self.fields) else ""

    def component(self, number: int, component: int = 1, repetition: int = 0) -> str:
        """One component of a field, its escapes resolved; empty if it is not there or null."""
        repetitions = self.field(number).split(self.repetition)
        parts = repetitions[repetition].split(self.component_separator)
        value = self.unescape(parts[component - 1]) if component <= len(parts) else ""
        return "" if value == NULL else value

    def unescape(self, text: str) -> str:
        """What a receiver shows for the escape sequences of the standard; anything else stays as it is."""
        if self.escape not in text:
            return text
        shown = {
            "F": self.separator,
            "S": self.component_separator,
            "T": self.subcomponent,
            "R": self.repetition,
        }
        shown |= {"E": self.escape, "H": "", "N": "", ".br": "\n", ".nf": "", ".fi": "", ".ce": "\n"}

        def resolve(match: re.Match[str]) -> str:
            code = match[1]
            if code in shown:
                return shown[code]
            if code[0] == "X":
                return _from_hex(code[1:], match[0])
            count = int(re.sub(r"\D", "", code) or 1)
            return {".sp": "\n", ".sk": " "}.get(code[:3], "") * count

        return re.sub(ESCAPE.format(re.escape(self.escape)), resolve, text)


def _from_hex(digits: str, otherwise: str) -> str:
    content = bytes.fromhex(digits)
    for encoding in ("utf-8", "cp1252"):
        try:
            return content.decode(encoding)
        except UnicodeDecodeError:
            continue
    return otherwise


@dataclass
class Report:
    """A document in the making: the texts under one TXA or OBR."""

    id: str = ""
    metadata: dict[str, str] = field(default_factory=dict)
    texts: list[tuple[str, str]] = field(default_factory=list)  # (name of the observation, text)
    sections: tuple[Annotation, ...] = ()
    notices: list[str] = field(default_factory=list)
    observed: bool = False  # whether it has an OBX
    skipped: bool = False  # whether the last OBX gave no text

    def document(self, fallback_id: str) -> Document:
        """The texts on lines of their own; observations with different names are sections."""
        named = groupby(self.texts, key=lambda text: text[0])
        pieces = [("\n".join(text for _, text in group), {"heading": name}) for name, group in named]
        text, sections = joined(pieces, "\n")
        if len(pieces) == 1:  # one name says nothing; an embedded document may have headings of its own
            sections = self.sections if len(self.texts) == 1 else ()
        kept: dict[str, Any] = {name: value for name, value in self.metadata.items() if value}
        return Document(self.id or fallback_id, text, self.metadata.get("type", ""), kept, sections)


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
        yield Notice(f"values and messages without text were passed over: {listed}", "only the texts of OBX are read")


def _messages(source: Source) -> Iterator[tuple[int, list[Segment]] | Problem]:
    """Each message with its number; a line that is no segment is a problem of its own."""
    message: list[Segment] = []
    number = 0
    separator, encoding = "|", "^~\\&"
    for raw in source.lines():
        line = raw.strip("\r\n\x0b\x1c\ufeff")
        if not line.strip():
            continue
        if header := HEADER.match(line):
            if message:
                yield number, message
            message = []
            if line[:3] == "MSH":
                number += 1
                separator, encoding = header[1], line[4 : header.end() - 1]
                message = [Segment(line, source.line, separator, encoding)]
        elif line[:3] == "MSH" and not (line[3:4].isalnum() or line[3:4].isspace()):
            if message:  # what follows does not belong to it
                yield number, message
            message = []
            fix = r"begin the message with its separators: MSH|^~\&|"
            yield Problem(f"the MSH segment has no separators: {line[:50]!r}", fix, line=source.line)
        elif not SEGMENT.match(line) or line[3:4] not in ("", separator):
            yield Problem(f"the line has no segment type: {line[:50]!r}", SEGMENT_FIX.strip(), line=source.line)
        elif line[:3] in BATCH:
            continue
        elif not message:
            fix = "begin each message with its MSH segment"
            yield Problem(f"the segment {line[:3]} belongs to no message", fix, line=source.line)
        else:
            message.append(Segment(line, source.line, separator, encoding))
    if message:
        yield number, message


def _documents(number: int, segments: list[Segment], source: Source, without_text: Counter[str]) -> Records:
    header = segments[0]
    kind = "^".join(filter(None, (header.component(9, 1), header.component(9, 2)))) or "message"
    problems: list[Problem] = []
    with_text = []
    for report in _reports(header, segments[1:], kind, problems, without_text, number):
        if report.texts:
            with_text.append(report)
    yield from problems
    if not with_text and not problems:
        without_text[f"{kind} without text"] += 1
    control_id = header.component(10) or source.document_id(number)
    seen: Counter[str] = Counter()
    for i, report in enumerate(with_text, 1):
        document = report.document(control_id if len(with_text) == 1 else f"{control_id}#{i}")
        seen[document.id] += 1
        if seen[document.id] > 1:  # one order may have several reports
            document = replace(document, id=f"{document.id}#{seen[document.id]}")
        for notice in report.notices:
            yield Notice(notice, "send the text as UTF-8 and whole", record=document.id)
        yield document


def _reports(
    header: Segment,
    segments: list[Segment],
    kind: str,
    problems: list[Problem],
    without_text: Counter[str],
    number: int,
) -> Iterator[Report]:
    """The texts of a message, by TXA where there is any, else by OBR; a report begins after the texts of the last."""
    facts = {"message": kind, "sending_facility": header.component(4), "date": iso_date(header.component(7))}
    patient: dict[str, str] = {}
    by_txa = any(segment.name == "TXA" for segment in segments)
    report = Report(metadata=dict(facts))
    for segment in segments:
        if report.observed and segment.name in ("PID", "TXA" if by_txa else "OBR"):
            yield report
            report = Report(metadata=facts | patient)
        if segment.name == "PID":
            name = " ".join(filter(None, (segment.component(5, 2), segment.component(5, 1))))
            patient = {"patient": segment.component(3) or segment.component(2), "patient_name": name}
            patient |= {"birth_date": iso_date(segment.component(7)), "sex": segment.component(8)}
            report.metadata |= patient
        elif segment.name == "TXA":
            date = segment.component(4) or segment.component(6) or header.component(7)
            report.id = segment.component(12) or segment.component(12, 3)
            report.metadata |= {
                "type": segment.component(2, 2) or segment.component(2),
                "date": iso_date(date),
            }
        elif segment.name == "OBR" and not by_txa:
            date = segment.component(7) or segment.component(22) or header.component(7)
            report.id = segment.component(3) or segment.component(2)
            report.metadata |= {
                "type": segment.component(4, 2) or segment.component(4),
                "date": iso_date(date),
            }
        elif segment.name == "OBX":
            report.observed = True
            before = len(report.texts)
            problem = _add_text(segment, report, without_text)
            report.skipped = len(report.texts) == before
            if problem is not None:
                problems.append(replace(problem, line=segment.line, record=number))
        elif segment.name in ("NTE", "ADD") and report.skipped:  # it belongs to what was passed over
            without_text["comments and continuations of these"] += 1
        elif segment.name == "NTE" and segment.field(3):  # a comment on what precedes it
            name = report.texts[-1][0] if report.texts else ""
            report.texts.append((name, segment.unescape(segment.field(3).replace(segment.repetition, "\n"))))
        elif segment.name == "ADD" and report.texts:  # the rest of a segment that was too long
            name, text = report.texts[-1]
            report.texts[-1] = (name, text + segment.unescape(segment.field(1)))
    yield report


def _add_text(segment: Segment, report: Report, without_text: Counter[str]) -> Problem | None:
    value_type, value = segment.component(2), segment.field(5)
    if segment.component(11) in DELETED:
        without_text["deleted results"] += 1
        return None
    if value_type not in (*TEXT_TYPES, "ED", "RP") or value == NULL:
        without_text[f"{value_type} values"] += 1
        return None
    name = segment.component(3, 2) or segment.component(3)
    count = len(value.split(segment.repetition))
    if value_type == "RP":
        fact = f"the text is only referred to, by {segment.component(5)!r}"
        return Problem(fact, "send the document itself in the OBX, as FT, TX or ED")
    if value_type == "ED":
        result = _embedded(segment)
        if isinstance(result, Problem):
            return result
        report.texts.append((name, result.text))
        report.sections = result.annotations
        report.notices += [result.notice] if result.notice else []
    elif value_type in ("CE", "CWE"):
        coded = [segment.component(5, 2, i) or segment.component(5, 1, i) for i in range(count)]
        report.texts.append((name, "\n".join(coded)))
    else:
        texts = [segment.unescape(repetition) for repetition in value.split(segment.repetition)]
        report.texts.append((name, "\n".join(texts)))
    return None


def _embedded(segment: Segment) -> Extracted | Problem:
    """Encapsulated data: source, type, subtype, encoding (A for none, Hex or Base64) and the data themselves."""
    kind, subtype, encoding = (segment.component(5, part).lower() for part in (2, 3, 4))
    mime = "application/pdf" if "pdf" in (kind, subtype) else f"{kind}/{subtype}" if kind else ""
    mime = "text/plain" if mime == "text/" else mime
    data = segment.component(5, 5)
    if encoding in ("", "base64"):
        return decode(data, mime)
    try:
        content = bytes.fromhex(data) if encoding == "hex" else data.encode("utf-8", "surrogatepass")
    except ValueError as error:
        return Problem(f"bad hexadecimal data ({error})", "encode the document again")
    return extract(content, mime)


def recognises(name: str, head: str) -> bool:
    return HEADER.match(head.lstrip("\x0b\r\n\ufeff ")) is not None or name.endswith(".hl7")


FORMAT = Format("hl7", "HL7 v2 messages: the OBX texts of MDM and ORU", recognises, read)
