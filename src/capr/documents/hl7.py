r"""The reader of HL7 v2 messages: the report texts in the OBX segments of MDM, ORU and any other message.

A file may hold any number of messages, with `\r`, `\n` or `\r\n` after each segment, batch headers and MLLP framing.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import Any

from capr.documents.attachment import AttachmentText, decode, extract
from capr.documents.dates import iso_date
from capr.documents.document import Annotation, Document
from capr.documents.format import Format, Records
from capr.documents.outline import join_parts
from capr.documents.problem import Notice, Problem
from capr.documents.source import Source

SEGMENT = re.compile(r"[A-Z][A-Z0-9]{2}")
HEADER = re.compile(r"(?:MSH|FHS|BHS)([^A-Za-z0-9\s])[^A-Za-z0-9\s]{3,5}\1")
ESCAPE = (
    r"{0}(F|S|T|R|E|H|N|\.br|\.nf|\.fi|\.ce|\.sp\s*\+?\d{{0,2}}|\.sk\s*\+?\d{{0,2}}"
    r"|\.(?:in|ti)\s*[+-]?\d{{0,3}}|X(?:[0-9A-Fa-f]{{2}})+){0}"
)
NULL = '""'  # HL7's notation for no value
DELETED = ("D", "W", "X")  # OBX-11: deleted, wrong, cannot be obtained
BATCH = ("FHS", "BHS", "BTS", "FTS")
TEXT_TYPES = ("TX", "FT", "ST", "CE", "CWE", "")
SEGMENT_FIX = r"begin each line with its segment, such as OBX|, and write a line break inside a text as \.br\ "


class Segment:
    """One line of a message. As in the standard, the numbers of fields and components count from 1.

    Attributes:
        name: the three characters that name the segment, such as `OBX`.
        line: its line in the file.
        fields: the raw fields, beginning with the name.
    """

    def __init__(self, line: str, number: int, separator: str, encoding: str) -> None:
        self.name, self.line = line[:3], number
        self.component_separator, self.repetition = encoding[0], encoding[1]
        self.escape, self.subcomponent = encoding[2], encoding[3:4] or "&"
        self.separator = separator
        self.fields = line.split(separator)
        if self.name == "MSH":  # the first field of MSH is the separator itself
            self.fields.insert(1, separator)

    def field(self, number: int) -> str:
        """Return a raw field, or an empty string if the segment has fewer fields."""
        return self.fields[number] if number < len(self.fields) else ""

    def component(self, number: int, component: int = 1, repetition: int = 0) -> str:
        """Return a component of a field with its escapes resolved; empty if it is missing or null."""
        repetitions = self.field(number).split(self.repetition)
        parts = repetitions[repetition].split(self.component_separator)
        value = self.unescape(parts[component - 1]) if component <= len(parts) else ""
        return "" if value == NULL else value

    def unescape(self, text: str) -> str:
        """Replace the standard's escape sequences by what a receiver displays, and keep all other text."""
        if self.escape not in text:
            return text
        replacements = {
            "F": self.separator,
            "S": self.component_separator,
            "T": self.subcomponent,
            "R": self.repetition,
        }
        replacements |= {"E": self.escape, "H": "", "N": "", ".br": "\n", ".nf": "", ".fi": "", ".ce": "\n"}

        def resolve(match: re.Match[str]) -> str:
            code = match[1]
            if code in replacements:
                return replacements[code]
            if code[0] == "X":
                return _decode_hex(code[1:], match[0])
            count = int(re.sub(r"\D", "", code) or 1)
            return {".sp": "\n", ".sk": " "}.get(code[:3], "") * count

        return re.sub(ESCAPE.format(re.escape(self.escape)), resolve, text)


def _decode_hex(digits: str, fallback: str) -> str:
    content = bytes.fromhex(digits)
    for encoding in ("utf-8", "cp1252"):
        try:
            return content.decode(encoding)
        except UnicodeDecodeError:
            continue
    return fallback


@dataclass
class Hl7Report:
    """The texts under one TXA or OBR, from which `document` makes a document."""

    id: str = ""
    metadata: dict[str, str] = field(default_factory=dict)
    texts: list[tuple[str, str]] = field(default_factory=list)  # (name of the observation, text)
    sections: tuple[Annotation, ...] = ()
    notices: list[str] = field(default_factory=list)
    has_obx: bool = False
    last_obx_skipped: bool = False  # because it had no text

    def document(self, fallback_id: str) -> Document:
        """Return a document with one text per line. Observations with different names become sections."""
        groups = groupby(self.texts, key=lambda text: text[0])
        parts = [("\n".join(text for _, text in group), {"heading": name}) for name, group in groups]
        text, sections = join_parts(parts, "\n")
        if len(parts) == 1:  # a single name does not make a section, but an embedded document may have headings
            sections = self.sections if len(self.texts) == 1 else ()
        metadata: dict[str, Any] = {name: value for name, value in self.metadata.items() if value}
        return Document(self.id or fallback_id, text, self.metadata.get("type", ""), metadata, sections)


def read(source: Source) -> Records:
    """Yield one document per TXA (MDM) or OBR (ORU) that has text."""
    skipped_counts: Counter[str] = Counter()
    for item in _messages(source):
        if isinstance(item, Problem):
            yield item
        else:
            yield from _documents(*item, source, skipped_counts)
    if skipped_counts:
        counts = ", ".join(f"{count} {kind}" for kind, count in sorted(skipped_counts.items()))
        yield Notice(f"values and messages without text were skipped: {counts}", "capr reads only the texts of OBX")


def _messages(source: Source) -> Iterator[tuple[int, list[Segment]] | Problem]:
    """Yield each message with its number, and a problem for each line that is not a segment."""
    message: list[Segment] = []
    number = 0
    separator, encoding = "|", "^~\\&"
    for raw_line in source.lines():
        line = raw_line.strip("\r\n\x0b\x1c\ufeff")
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
            if message:  # it ends here, because the next segments belong to the broken MSH
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


def _documents(number: int, segments: list[Segment], source: Source, skipped_counts: Counter[str]) -> Records:
    header = segments[0]
    kind = "^".join(filter(None, (header.component(9, 1), header.component(9, 2)))) or "message"
    problems: list[Problem] = []
    reports = []
    for report in _reports(header, segments[1:], kind, problems, skipped_counts, number):
        if report.texts:
            reports.append(report)
    yield from problems
    if not reports and not problems:
        skipped_counts[f"{kind} without text"] += 1
    control_id = header.component(10) or source.document_id(number)
    seen: Counter[str] = Counter()
    for i, report in enumerate(reports, 1):
        document = report.document(control_id if len(reports) == 1 else f"{control_id}#{i}")
        seen[document.id] += 1
        if seen[document.id] > 1:  # an order may have several reports
            document = replace(document, id=f"{document.id}#{seen[document.id]}")
        for notice in report.notices:
            yield Notice(notice, "send the complete text as UTF-8", record=document.id)
        yield document


def _reports(
    header: Segment,
    segments: list[Segment],
    kind: str,
    problems: list[Problem],
    skipped_counts: Counter[str],
    number: int,
) -> Iterator[Hl7Report]:
    """Yield the reports of a message.

    A TXA begins a report, or an OBR if the message has no TXA. A report that has no OBX yet continues instead.
    """
    message_fields = {"message": kind, "sending_facility": header.component(4), "date": iso_date(header.component(7))}
    patient: dict[str, str] = {}
    by_txa = any(segment.name == "TXA" for segment in segments)
    report = Hl7Report(metadata=dict(message_fields))
    for segment in segments:
        if report.has_obx and segment.name in ("PID", "TXA" if by_txa else "OBR"):
            yield report
            report = Hl7Report(metadata=message_fields | patient)
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
            report.has_obx = True
            before = len(report.texts)
            problem = _add_text(segment, report, skipped_counts)
            report.last_obx_skipped = len(report.texts) == before
            if problem is not None:
                problems.append(replace(problem, line=segment.line, record=number))
        elif segment.name in ("NTE", "ADD") and report.last_obx_skipped:  # it belongs to a skipped OBX
            skipped_counts["comments and continuations of these"] += 1
        elif segment.name == "NTE" and segment.field(3):  # a comment on the previous text
            name = report.texts[-1][0] if report.texts else ""
            report.texts.append((name, segment.unescape(segment.field(3).replace(segment.repetition, "\n"))))
        elif segment.name == "ADD" and report.texts:  # the rest of a segment that was too long
            name, text = report.texts[-1]
            report.texts[-1] = (name, text + segment.unescape(segment.field(1)))
    yield report


def _add_text(segment: Segment, report: Hl7Report, skipped_counts: Counter[str]) -> Problem | None:
    value_type, value = segment.component(2), segment.field(5)
    if segment.component(11) in DELETED:
        skipped_counts["deleted results"] += 1
        return None
    if value_type not in (*TEXT_TYPES, "ED", "RP") or value == NULL:
        skipped_counts[f"{value_type} values"] += 1
        return None
    name = segment.component(3, 2) or segment.component(3)
    count = len(value.split(segment.repetition))
    if value_type == "RP":
        fact = f"the OBX only links to its text, {segment.component(5)!r}"
        return Problem(fact, "send the document itself in the OBX, as FT, TX or ED")
    if value_type == "ED":
        result = _extract_embedded(segment)
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


def _extract_embedded(segment: Segment) -> AttachmentText | Problem:
    """Extract the text of encapsulated data.

    The field has the components source, type, subtype, encoding (A for none, Hex or Base64) and data.
    """
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
