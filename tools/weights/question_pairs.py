"""Make pairs of questions and passages: questions of people, of the written notes and of SQuAD, and rough ones."""

import json
import random
import re
from itertools import islice

from notes import cases, shared_notes

import capr
from capr.index.prepare import prepare
from capr.supervise.pairs import Draw, LabelledPassage, TrainingPairs
from capr.supervise.split import is_test
from capr.text.names import plain_key
from capr.text.stopwords import stopwords

MENTION_QUESTIONS = {  # about a mention in a case report
    "disease": (
        "When was {} diagnosed?",
        "How was the {} treated?",
        "What caused the {}?",
        "Did the patient have {}?",
        "What led to the {}?",
        "Is there a family history of {}?",
        "How severe was the {}?",
        "Was it {}?",
    ),
    "symptom": (
        "When did the {} begin?",
        "Did she have any {}?",
        "What was done about the {}?",
        "Why did he have {}?",
        "How long did the {} last?",
        "Was there {} on examination?",
        "Did the {} come back?",
    ),
    "drug": (
        "Why was {} given?",
        "What dose of {} was given?",
        "When was {} started?",
        "Why was {} stopped?",
        "How did the patient respond to {}?",
        "Was {} continued at home?",
        "How was {} given, and for how long?",
    ),
}
QUESTION_STARTS = (
    "What was",
    "Why was",
    "When was",
    "Which",
    "How was",
    "Did",
    "Was there",
    "How much",
    "Where was",
    "",
    "",
)
SQUAD_QUESTIONS = 70  # the maximum for each article of SQuAD 1.1's training set
WORD = re.compile(r"\w{3,}")


def questions(data):
    """Return real questions with the passages that answer them, from PubMedQA, COVID-QA and SQuAD."""
    passages, draws = [], []
    for id, record in json.loads((data / "pubmedqa" / "ori_pqal.json").read_text()).items():
        offset = len(passages)
        parts = zip(record["LABELS"], record["CONTEXTS"], strict=True)
        labels = (id,), ("answer",)  # labels that mark all parts of an abstract as answers to its question
        passages += [LabelledPassage(id, "", label.capitalize(), text, *labels) for label, text in parts]
        wordings = (record["QUESTION"],)
        draws += [Draw(number, id, "answer", questions=wordings) for number in range(offset, len(passages))]
    squad_files = [data / "squad" / name for name in ("squad2_half_dev.json", "xquad_en.json")]
    for document in capr.read([data / "covid_qa", *squad_files]):
        if is_test(document.id):
            continue
        document_passages = capr.passages(document)
        offset = len(passages)
        passages += [
            LabelledPassage(document.id, document.title, "", document[passage.span]) for passage in document_passages
        ]
        for question in document.annotated("question"):
            for answer in question.value["answers"][:1]:
                for position, passage in enumerate(document_passages):
                    if passage.span.begin <= answer["begin"] < passage.span.end:
                        other_numbers = [
                            offset + number for number in range(len(document_passages)) if number != position
                        ]
                        negatives = random.Random(f"{document.id} {position}").sample(
                            other_numbers, min(8, len(other_numbers))
                        )
                        wordings = (question.value["question"],)
                        draws.append(Draw(offset + position, questions=wordings, negatives=tuple(negatives)))
    return TrainingPairs(passages, draws)


def written_questions(reports, finder):
    """Return the passages of notes, as a library cuts and titles them, with the questions that they answer.

    The negatives are the other passages of the note. A question with several answers counts for each of their passages.
    """
    passages, draws = [], []
    for report in reports:
        document = report.document
        entries = prepare(document, finder, b"").entries
        offset = len(passages)
        identities = [[] for _ in entries]
        for question in report.questions:
            answering = sorted(
                {
                    number
                    for answer in question.answers
                    for number, entry in enumerate(entries)
                    if entry.passage.span.begin <= answer.begin < entry.passage.span.end
                }
            )
            negatives = tuple(offset + number for number in range(len(entries)) if number not in answering)
            for number in answering:
                identities[number].append(question.id)
                draws.append(
                    Draw(offset + number, question.id, "answer", questions=(question.text,), negatives=negatives)
                )
        passages += [
            library_text(document, entry, tuple(names), ("answer",))
            for entry, names in zip(entries, identities, strict=True)
        ]
    return TrainingPairs(passages, draws)


def library_text(document, entry, entities=(), aspects=()):
    """Return a passage such that its view `title` is what a library gives to its models."""
    passage = entry.passage
    heading_words = "" if passage.heading_span else passage.heading or ""
    return LabelledPassage(document.id, document.title, heading_words, entry.text, entities, aspects)


def squad_questions(data, held_out):
    """Return questions of SQuAD 1.1's training set, without its articles about entities that are held out.

    The negatives are paragraphs of the same article: half of them share the most words with the question, the others
    are random.
    """
    articles = {}
    for document in capr.read(data / "squad" / "squad1_train.json.gz"):
        if plain_key(document.title.replace("_", " ")) not in held_out:
            articles.setdefault(document.title, []).append(document)
    passages, draws = [], []
    for title, documents in articles.items():
        rng, offset = random.Random(title), len(passages)
        words = [set(WORD.findall(document.text.lower())) - stopwords() for document in documents]
        passages += [
            LabelledPassage(f"squad {title}", title.replace("_", " "), "", document.text) for document in documents
        ]
        article_questions = [
            (number, question.value["question"])
            for number, document in enumerate(documents)
            for question in document.annotated("question")
        ]
        for number, question in rng.sample(article_questions, min(SQUAD_QUESTIONS, len(article_questions))):
            others = [other for other in range(len(documents)) if other != number]
            question_words = set(WORD.findall(question.lower())) - stopwords()
            alike = sorted(others, key=lambda other: (-len(question_words & words[other]), other))[:5]
            chosen = dict.fromkeys((*alike, *rng.sample(others, min(5, len(others)))))
            negatives = tuple(offset + other for other in chosen)
            draws.append(Draw(offset + number, questions=(question,), negatives=negatives))
    return TrainingPairs(passages, draws)


def case_questions(data, finder, words=60, count=2500):
    """Return short passages of case reports and ACI-Bench's notes, each with a possible plain question.

    The question asks about a mention of the passage, or contains half of the words of one of its sentences. The
    negatives are other passages of the document. The pairs are rough, but a teacher scores how well each passage fits.
    """
    passages, draws = [], []
    for document in (*islice(cases(data), count), *(note for note in shared_notes(data) if note.id.startswith("aci"))):
        document_passages = capr.passages(document, max_words=words)
        offset, rng = len(passages), random.Random(document.id)
        passages += [LabelledPassage(document.id, "", "", document[passage.span]) for passage in document_passages]
        mentions = finder.annotate(document)
        for position in (
            rng.sample(range(len(document_passages)), min(4, len(document_passages)))
            if len(document_passages) > 2
            else ()
        ):
            mentions_inside = [mention for mention in mentions if document_passages[position].span.covers(mention.span)]
            if mentions_inside and rng.random() < 0.6:
                mention = rng.choice(mentions_inside)
                name = document[mention.span]
                question = rng.choice(MENTION_QUESTIONS[mention.kind]).format(name)
            else:
                text = passages[offset + position].text
                sentence_words = rng.choice(capr.sentences(text)).of(text).split()
                name = ""
                question = " ".join(
                    [
                        rng.choice(QUESTION_STARTS),
                        *[word.strip(".,;:()") for word in sentence_words if rng.random() < 0.5][:12],
                    ]
                )
            other_positions = [
                other
                for other in range(len(document_passages))
                if other != position and not (name and name in passages[offset + other].text)
            ]
            if len(question.split()) > 3 and other_positions:
                negatives = tuple(offset + other for other in rng.sample(other_positions, min(8, len(other_positions))))
                draws.append(Draw(offset + position, questions=(question.strip(),), negatives=negatives))
    return TrainingPairs(passages, draws)
