"""The contents of a batch."""

import random

import pytest
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

from capr.models.bases import PieceTokenizer, load_classifier, load_encoder, load_tokenizer
from capr.models.bi import Bi
from capr.models.cross import Cross, CrossEncoder, CrossObjective
from capr.supervise.pairs import Draw, LabelledPassage, TrainingPairs


def test_negatives_are_any_passages_if_all_may_answer(bert):
    texts = [LabelledPassage(str(number), "", "", "gout", ("g",), ("s",)) for number in range(20)]
    draws = [Draw(number, "g", "s", ("gout",), "Symptoms") for number in range(20)]
    objective = Cross(base=str(bert), negatives=5, pieces=16).objective(TrainingPairs(texts, draws), "cpu")
    batch = objective.batch(draws[:2], random.Random(0))
    assert sum(len(part["input_ids"]) for part in batch.parts) == 12


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
    family = Cross(base=str(bert), negatives=2, pieces=32)
    judge = CrossEncoder(load_classifier(str(bert)))
    teacher = CrossObjective(family, judge, TrainingPairs([], []), PieceTokenizer(other, classifier, "cpu"))
    reader = PieceTokenizer(tokenizer, classifier, "cpu")
    student = CrossObjective(family, CrossEncoder(classifier), world, reader, teachers=[teacher])
    batch = student.batch(world.draws[:2], random.Random(0))
    (parts, _), mine = batch.teacher_inputs[0], batch.parts
    assert parts[0]["input_ids"].shape == mine[0]["input_ids"].shape
    assert parts[0]["input_ids"].tolist() != mine[0]["input_ids"].tolist()


def test_the_end_of_the_text_before_is_kept(bert):
    reader = PieceTokenizer(load_tokenizer(str(bert)), load_encoder(str(bert)), "cpu")
    inputs = reader.read_windows([("the " * 100 + "rash", "gout", "")], 8)
    ids = inputs["input_ids"][0].tolist()
    assert reader.base_tokenizer.token_to_id("rash") in ids


def test_layers_that_are_not_there_cannot_be_kept(bert, world):
    from capr.documents import CaprError

    with pytest.raises(CaprError, match="5 layers of the base cannot be kept"):
        Bi(base=str(bert), layers=5).objective(world, "cpu")
