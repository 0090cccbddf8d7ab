"""Does a discourse model add to what words and vectors find? R@1, R@5 and R@10 on the questions that ship.

python tools/cdv/first_stage.py CDV

CDV is the folder of a discourse model. Each question is asked of the sample notes or articles by words, by vectors and
by sentences, and the rankings are joined as in a library.
"""

import sys
import tempfile
from statistics import fmean

import capr
from capr import samples
from capr.index import Found
from capr.search.fusion import normalised

JOINED = (("lexical", "dense"), ("lexical", "dense", "cdv"), ("dense", "cdv"), ("cdv",))
AT = (1, 5, 10)


def main(discourse):
    shares = {}
    for collection in ("notes", "articles"):
        with tempfile.TemporaryDirectory(prefix="capr-") as folder:
            library = capr.Library(folder, ranker="none", discourse=discourse)
            library.add(samples.folder() / collection)
            for question in samples.questions():
                if question.answers and question.collection == collection:
                    form = "questions" if question.question else "pairs"
                    for joined, found in recalled(library, question).items():
                        shares.setdefault((form, joined), []).append(found)
    for (form, joined), found in sorted(shares.items()):
        means = " / ".join(f"{100 * fmean(column):.1f}" for column in zip(*found, strict=True))
        print(f"{len(found)} {form}, {' + '.join(joined)}: {means}")


def recalled(library, question):
    """By what is joined, the share of the answers in the first 1, 5 and 10 passages."""
    query = question.question or capr.Query(entity=question.entity or "", aspect=question.aspect or "")
    only = {"patient": question.patient} if question.patient else None
    passages, rankings = {}, {}
    for mode in ("lexical", "dense", "cdv"):
        hits = library.search(query, 100, mode=mode, filters=only)
        places = [passages.setdefault((hit.document, hit.passage.span), len(passages)) for hit in hits]
        rankings[mode] = [Found(place, hit.score) for place, hit in zip(places, hits, strict=True)]
    known = list(passages)
    shares = {}
    for joined in JOINED:
        order = [known[found.number] for found in normalised([(mode, rankings[mode]) for mode in joined])]
        shares[joined] = [fmean(stands(answer, order[:k]) for answer in question.answers) for k in AT]
    return shares


def stands(answer, passages):
    """Whether an answer begins in one of the passages."""
    return any(
        document == answer.document and span.begin <= answer.span.begin < span.end for document, span in passages
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
