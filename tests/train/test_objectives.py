"""What a batch holds."""

import random

import pytest
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

from capr.models.cross import CrossEncoder
from capr.train.bases import Reader, load_classifier, load_encoder, load_tokenizer
from capr.train.objectives import CrossObjective, Reading
from capr.train.pairs import Draw, Pairs, Text
from capr.train.retrieval import Recipe, build


def test_where_all_passages_may_answer_any_is_taken(bert):
    texts = [Text(str(number), "", "", "gout", ("g",), ("s",)) for number in range(20)]
    draws = [Draw(number, "g", "s", ("gout",), "Symptoms") for number in range(20)]
    objective = build(Pairs(texts, draws), Recipe("cross", str(bert)), Reading(negatives=5, pieces=16), "cpu")
    batch = objective.batch(draws[:2], random.Random(0))
    assert sum(len(part["input_ids"]) for part in batch.passages) == 12


def test_a_teacher_reads_with_its_own_tokenizer(bert, world):
    classifier = load_classifier(str(bert))
    tokenizer = load_tokenizer(str(bert))
    vocabulary = tokenizer.get_vocab()
    special = [token for token in vocabulary if token.startswith("[")]
    words = sorted(set(vocabulary) - set(special))
    other = Tokenizer(
        models.WordPiece(
            {
                **{t: vocabulary[t] for t in special},
                **dict(zip(words, [vocabulary[w] for w in reversed(words)], strict=True)),
            },
            unk_token="[UNK]",
        )
    )
    other.normalizer = normalizers.BertNormalizer(lowercase=True)
    other.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    other.post_processor = processors.BertProcessing(("[SEP]", vocabulary["[SEP]"]), ("[CLS]", vocabulary["[CLS]"]))
    reading = Reading(negatives=2, pieces=32)
    teacher = CrossObjective(
        CrossEncoder(load_classifier(str(bert))), Pairs([], []), Reader(other, classifier, "cpu"), reading
    )
    student = CrossObjective(CrossEncoder(classifier), world, Reader(tokenizer, classifier, "cpu"), reading, [teacher])
    batch = student.batch(world.draws[:2], random.Random(0))
    (_, parts, _), mine = batch.judged[0], batch.passages
    assert parts[0]["input_ids"].shape == mine[0]["input_ids"].shape
    assert parts[0]["input_ids"].tolist() != mine[0]["input_ids"].tolist()


def test_the_end_of_what_stands_before_is_kept(bert):
    reader = Reader(load_tokenizer(str(bert)), load_encoder(str(bert)), "cpu")
    inputs = reader.read_windows([("the " * 100 + "rash", "gout", "")], 8)
    ids = inputs["input_ids"][0].tolist()
    assert reader.tokenizer.token_to_id("rash") in ids


def test_layers_that_are_not_there_cannot_be_kept(bert, world):
    from capr.documents import CaprError

    with pytest.raises(CaprError, match="5 layers of the base cannot be kept"):
        build(world, Recipe("bi", str(bert), layers=5), Reading(), "cpu")
