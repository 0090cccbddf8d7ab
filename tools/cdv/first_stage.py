"""Measure the gain of a discourse model over words and vectors: R@1, R@5 and R@10 on the sample questions.

python tools/cdv/first_stage.py CDV

CDV is the folder of a discourse model. The script searches the sample notes or articles for each question by words, by
vectors and by sentences, and fuses the rankings as a library does.
"""

import sys
import tempfile
from statistics import fmean

import capr
from capr import samples
from capr.index import PassageKey, PassageMatch
from capr.search.fusion import normalised

STAGES = (("lexical", "dense"), ("lexical", "dense", "cdv"), ("dense", "cdv"), ("cdv",))
CUTOFFS = (1, 5, 10)


def main(discourse):
    shares = {}
    for collection in ("notes", "articles"):
        with tempfile.TemporaryDirectory(prefix="capr-") as folder:
            library = capr.Library(folder, ranker="none", discourse=discourse)
            library.add(samples.folder() / collection)
            for question in samples.questions():
                if question.answers and question.collection == collection:
                    form = "questions" if question.question else "pairs"
                    for stages, recalls in recall_of_question(library, question).items():
                        shares.setdefault((form, stages), []).append(recalls)
    for (form, stages), recalls in sorted(shares.items()):
        means = " / ".join(f"{100 * fmean(column):.1f}" for column in zip(*recalls, strict=True))
        print(f"{len(recalls)} {form}, {' + '.join(stages)}: {means}")


def recall_of_question(library, question):
    """Return, for each set of stages, the share of the answers in the first 1, 5 and 10 passages."""
    query = question.question or capr.Query(entity=question.entity or "", aspect=question.aspect or "")
    filters = {"patient": question.patient} if question.patient else None
    passages, rankings = {}, {}  # the keys are passage keys, and modes
    for mode in ("lexical", "dense", "cdv"):
        hits = library.search(query, 100, mode=mode, filters=filters)
        keys = [PassageKey(hit.document, hit.passage.index) for hit in hits]
        for key, hit in zip(keys, hits, strict=True):
            passages.setdefault(key, (len(passages), (hit.document, hit.passage.span)))
        rankings[mode] = [PassageMatch(key, hit.score, passages[key][0]) for key, hit in zip(keys, hits, strict=True)]
    shares = {}
    for stages in STAGES:
        order = [passages[match.key][1] for match in normalised([(mode, rankings[mode]) for mode in stages])]
        shares[stages] = [fmean(is_found(answer, order[:k]) for answer in question.answers) for k in CUTOFFS]
    return shares


def is_found(answer, passages):
    """Tell whether an answer begins in one of the passages."""
    return any(
        document == answer.document and span.begin <= answer.span.begin < span.end for document, span in passages
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
