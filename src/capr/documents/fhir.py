"""The reader of FHIR R4: the texts inside DocumentReference and DiagnosticReport, from Bundles or NDJSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from capr.documents.attachment import decode
from capr.documents.dates import iso_date
from capr.documents.document import Document
from capr.documents.format import Format, Records
from capr.documents.json_stream import records, values_at
from capr.documents.problem import Notice, Problem
from capr.documents.source import Source

LOINC = "http://loinc.org"
URL_FIX = "download the attachment and put it into `data` as base64, or read the downloaded file itself"


def read(source: Source) -> Records:
    """Yield one document per attachment that contains its text."""
    without_text: Counter[str] = Counter()
    empty = True
    for record in records(source, values_at("entry"), fix="NDJSON has one complete resource per line"):
        empty = False
        if isinstance(record, Problem):
            yield record
            continue
        for resource in _unwrap(record.value):
            if isinstance(resource, Problem):
                yield replace(resource, line=record.line)
            elif not isinstance(resource, dict) or not isinstance(resource.get("resourceType"), str):
                fix = "each entry needs a `resource` object, each NDJSON line a resource, with its `resourceType`"
                yield Problem("it is not a FHIR resource: no resourceType", fix, line=record.line, record=record.number)
            elif resource["resourceType"] in ("DocumentReference", "DiagnosticReport"):
                for item in _documents(resource, record.number, source):
                    yield replace(item, line=record.line) if isinstance(item, Problem) else item
            else:
                without_text[resource["resourceType"]] += 1
    if empty and not source.head.strip():
        yield Problem("the file is empty", "export it again")
    if without_text:
        counts = ", ".join(f"{count} {kind}" for kind, count in sorted(without_text.items()))
        fix = "only DocumentReference and DiagnosticReport hold documents"
        yield Notice(f"resources without a document were skipped: {counts}", fix)


def _unwrap(value: Any) -> Iterator[Any]:
    """Yield the resource of an entry, or the resources of a Bundle, which may contain Bundles."""
    resource = value["resource"] if isinstance(value, dict) and "resource" in value else value
    if not isinstance(resource, dict) or resource.get("resourceType") != "Bundle":
        yield resource
        return
    entries = resource.get("entry") or []
    if not isinstance(entries, list):
        yield Problem("the entry of the Bundle is not a list of resources", "write the entries as a list")
        return
    for entry in entries:
        yield from _unwrap(entry)


def _documents(resource: Mapping[str, Any], number: int, source: Source) -> Records:
    kind = resource["resourceType"]
    identifier = str(resource.get("id") or source.document_id(number))
    if kind == "DocumentReference":
        attachments = [content.get("attachment") for content in _objects(resource.get("content"))]
    else:
        attachments = list(_objects(resource.get("presentedForm")))
    if not attachments:
        field = "content.attachment" if kind == "DocumentReference" else "presentedForm"
        yield Problem(f"the {kind} has no {field}", f"export it with its {field}", record=identifier)
    metadata = _metadata(resource)
    for i, attachment in enumerate(attachments, 1):
        document_id = identifier if len(attachments) == 1 else f"{identifier}#{i}"
        if not isinstance(attachment, dict):
            yield Problem("the content has no attachment", "export it with its attachment", record=document_id)
        elif not isinstance(attachment.get("data"), str):
            url = attachment.get("url")
            fact = f"the resource only links to its text, url {url!r}"
            if not url:
                fact = "the attachment has no data and no url"
            yield Problem(fact, URL_FIX if url else "export the attachment with its data", record=document_id)
        else:
            result = decode(attachment["data"], str(attachment.get("contentType") or ""))
            if isinstance(result, Problem):
                yield replace(result, record=document_id)
                continue
            if result.notice:
                yield Notice(result.notice, "name the charset in the content type", record=document_id)
            title = attachment.get("title") or resource.get("description") or metadata.get("type") or ""
            yield Document(document_id, result.text, str(title), metadata, result.annotations)


def _metadata(resource: Mapping[str, Any]) -> dict[str, Any]:
    """Return patient, date, type, LOINC code and other fields, whose names differ between the two resource types."""
    is_report = resource["resourceType"] == "DiagnosticReport"
    concept = _object(resource.get("code" if is_report else "type"))
    codings = list(_objects(concept.get("coding")))
    loinc = next((coding for coding in codings if coding.get("system") == LOINC), {})
    subject = _object(resource.get("subject"))
    period = _object(resource.get("effectivePeriod") if is_report else _object(resource.get("context")).get("period"))
    dates = (
        resource.get("effectiveDateTime"),
        period.get("start"),
        resource.get("issued"),
        resource.get("date"),
    )
    fields = {
        "patient": _reference(subject.get("reference")) or _object(subject.get("identifier")).get("value"),
        "patient_name": subject.get("display"),
        "date": next((iso_date(str(date)) for date in dates if date), None),
        "type": concept.get("text") or loinc.get("display") or next((c.get("display") for c in codings), None),
        "loinc": loinc.get("code"),
        "status": resource.get("status"),
        "conclusion": resource.get("conclusion"),
        "resource": resource["resourceType"],
    }
    return {name: value for name, value in fields.items() if value}


def _reference(reference: Any) -> str:
    """Return the id in a reference: 17 for `Patient/17`, `http://server/Patient/17/_history/2` and `urn:uuid:17`."""
    if not isinstance(reference, str):
        return ""
    return reference.split("/_history/")[0].rsplit("/", 1)[-1].removeprefix("urn:uuid:").removeprefix("#")


def _object(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _objects(value: Any) -> Iterator[Mapping[str, Any]]:
    return (item for item in (value if isinstance(value, list) else []) if isinstance(item, dict))


def recognises(name: str, head: str) -> bool:
    return head.lstrip()[:1] in "{[" and '"resourceType"' in head


FORMAT = Format("fhir", "FHIR R4 Bundles and NDJSON: DocumentReference, DiagnosticReport", recognises, read)
