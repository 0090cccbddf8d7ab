"""Makes keyword queries from passages: names of mentions as clinicians write them, and rare words.

Each query has one to three terms. All passages that contain all of its terms count as answers.
"""

import random
import re
from collections import Counter

from capr.supervise.pairs import Draw, LabelledPassage, TrainingPairs
from capr.text.stopwords import stopwords

WORD = re.compile(r"[A-Za-z][A-Za-z0-9'/-]*[A-Za-z0-9]")
PER_PASSAGE = 2
MAX_ANSWERING = 40  # a query that more passages answer says too little about each
RARE = 12  # the maximum number of passages with a rare word
NEGATIVES = 8
FORMS = {
    "disease": ("{}", "{}", "hx of {}", "h/o {}", "pt w/ {}", "pt w/ hx of {}", "{} history", "known {}", "{} tx"),
    "symptom": ("{}", "{}", "c/o {}", "pt w/ {}", "{} on exam", "{} onset"),
    "drug": ("{}", "{}", "on {}", "{} dose", "started {}", "pt on {}", "{} mg"),
}


def keyword_pairs(entries, vocabulary, seed="keywords"):
    """Return the pairs of passages, given as (document, title, heading, text, mentions).

    A mention is (kind, identity, words). Draws are the same for the same seed.
    """
    rng = random.Random(seed)
    postings = {}
    for number, entry in enumerate(entries):
        for key in keys_of(entry):
            postings.setdefault(key, set()).add(number)
    by_document = {}
    for number, entry in enumerate(entries):
        by_document.setdefault(entry[0], []).append(number)
    labels, draws = [[] for _ in entries], []
    for number, entry in enumerate(entries):
        for _ in range(PER_PASSAGE):
            query, keys = draw_query(entry, postings, vocabulary, rng)
            answering = set.intersection(*(postings[key] for key in keys)) if keys else set()
            if not query or not 0 < len(answering) <= MAX_ANSWERING:
                continue
            identity = f"query {len(draws)}"
            for other in answering:
                labels[other].append(identity)
            partly = [other for key in sorted(keys) for other in sorted(postings[key] - answering)[:20]]
            near = [other for other in by_document[entry[0]] if other not in answering]
            negatives = sample(partly, NEGATIVES // 2, rng) + sample(near, NEGATIVES, rng)
            negatives = tuple(dict.fromkeys(negatives))[:NEGATIVES]
            draws.append(Draw(number, identity, "keywords", questions=(query,), negatives=negatives))
    texts = [
        LabelledPassage(document, title, heading, text, tuple(identities), ("keywords",))
        for (document, title, heading, text, _), identities in zip(entries, labels, strict=True)
    ]
    return TrainingPairs(texts, draws)


def keys_of(entry):
    """Return the identities of the mentions and the words of a passage."""
    words = {("word", word.lower()) for word in WORD.findall(entry[3])}
    return words | {("mention", identity) for _, identity, _ in entry[4]}


def draw_query(entry, postings, vocabulary, rng):
    """Draw a query and the keys that an answering passage has."""
    mentions, text = entry[4], entry[3]
    if mentions and rng.random() < 0.5:
        kind, identity, words = rng.choice(mentions)
        concept = vocabulary.by_code(identity)
        names = [words, *(name for name in (concept.names if concept else ()) if len(name.split()) <= 4)]
        name = words if rng.random() < 0.5 else rng.choice(names)
        query, keys = rng.choice(FORMS.get(kind, ("{}",))).format(name), {("mention", identity)}
        if rng.random() < 0.4:
            others = [other for other in mentions if other[1] != identity]
            rare = rare_words(text, postings)
            if others and rng.random() < 0.5:
                _, other_identity, other_words = rng.choice(others)
                return f"{name} {rng.choice(('', 'and ', 'with '))}{other_words}", keys | {("mention", other_identity)}
            if rare:
                word = rng.choice(rare)
                return f"{name} {word}", keys | {("word", word.lower())}
        return query, keys
    rare = rare_words(text, postings)
    if not rare:
        return "", set()
    chosen = rng.sample(rare, min(len(rare), rng.choice((1, 1, 2, 3))))
    if rng.random() < 0.3:
        chosen = [word.lower() for word in chosen]
    return " ".join(chosen), {("word", word.lower()) for word in chosen}


def rare_words(text, postings):
    """Return the words of a text that few passages have, the rarest first; no stop words."""
    counts = Counter({word: len(postings[("word", word.lower())]) for word in dict.fromkeys(WORD.findall(text))})
    stop = stopwords()
    return [
        word
        for word, count in sorted(counts.items(), key=lambda item: (item[1], item[0]))
        if count <= RARE and word.lower() not in stop and len(word) > 2
    ][:12]


def sample(items, count, rng):
    """Draw some of the items, or all if there are fewer."""
    return rng.sample(items, min(count, len(items)))
