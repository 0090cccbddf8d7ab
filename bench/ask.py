"""How long one question over a long report takes, beside torch in 32 bits over the same report by sliding windows.

python bench/ask.py READER [--words 3000] [--length 900] [--questions 7] [--checkpoint FOLDER]

READER is a folder that capr train reader has made. capr reads the report in uniform paragraphs of --length characters,
with model.onnx; `ranked` is the same with the ranker's second opinion, if the folder has a ranked.json. Beside it, in
turns, the weights for torch (READER/torch, or --checkpoint: any Hugging Face model for question answering) read the
whole report in windows of 384 word pieces that share 128, as transformers' pipeline for question answering did. Version
5 has none any more, so what it did is written out here: all windows in batches, the best span of each, the best of all.
The report is made of the sample notes.
"""

import argparse
import os
import time
from pathlib import Path
from statistics import median

import numpy as np

from capr import samples, uniform
from capr.search.models import answer_reader
from capr.search.reader import OnnxReader

QUESTIONS = (
    "What dose of metoprolol was the patient discharged on?",
    "Why was the patient admitted?",
    "What was the ejection fraction?",
    "Which antibiotic was given?",
    "Is the patient allergic to penicillin?",
    "When is the follow-up appointment?",
    "What did the chest x-ray show?",
)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("reader", type=Path)
    parser.add_argument("--words", type=int, default=3000)
    parser.add_argument("--length", type=int, default=900)
    parser.add_argument("--questions", type=int, default=len(QUESTIONS))
    parser.add_argument("--checkpoint", type=Path)
    given = parser.parse_args()
    cores = len(os.sched_getaffinity(0))
    text = report(given.words)
    paragraphs = [span.of(text) for span in uniform(text, given.length)]
    ours, peer = OnnxReader(given.reader), Peer(given.checkpoint or given.reader / "torch", cores)
    whole = answer_reader(given.reader)
    ways = {
        "capr": lambda question: ours.read(question, paragraphs),
        "ranked": lambda question: whole.read(question, paragraphs),
        "torch": lambda question: peer.answer(question, text),
    }
    seconds = {name: [] for name in ways}
    for turn in range(given.questions + 1):
        for name, ask in ways.items():
            begun = time.perf_counter()
            ask(QUESTIONS[turn % len(QUESTIONS)])
            if turn:  # the first is slower
                seconds[name].append(time.perf_counter() - begun)
    print(f"{len(text.split()):,} words, {len(paragraphs)} paragraphs of {given.length} characters, {cores} cores")
    for name, times in seconds.items():
        print(f"{name:6} {median(times):.2f} s a question ({min(times):.2f} to {max(times):.2f})")
    for name in ("capr", "ranked"):
        ratios = [slow / fast for slow, fast in zip(seconds["torch"], seconds[name], strict=True)]
        print(f"{name} is {median(ratios):.2f} times as fast ({min(ratios):.2f} to {max(ratios):.2f})")


def report(words):
    """So many words of the sample notes, as one text."""
    text = "\n\n".join(document.text for document in samples.documents())
    end = 0
    for _ in range(words):
        end = next((i for i in range(end + 1, len(text)) if text[i].isspace() and not text[i - 1].isspace()), len(text))
    return text[:end]


class Peer:
    """A model of Hugging Face for question answering, in torch."""

    def __init__(self, folder, threads):
        import torch
        from transformers import AutoModelForQuestionAnswering, PreTrainedTokenizerFast

        torch.set_num_threads(threads)
        self.torch = torch
        self.model = AutoModelForQuestionAnswering.from_pretrained(folder).eval()
        marks = {"pad_token": "[PAD]", "cls_token": "[CLS]", "sep_token": "[SEP]", "unk_token": "[UNK]"}
        self.tokenizer = PreTrainedTokenizerFast(tokenizer_file=str(folder / "tokenizer.json"), **marks)

    def answer(self, question, text, batch=8):
        """The best span of the whole text."""
        encoded = self.tokenizer(
            question, text, max_length=384, stride=128, truncation="only_second", padding=True, return_tensors="pt",
            return_overflowing_tokens=True, return_offsets_mapping=True, return_token_type_ids=True,
        )  # fmt: skip
        names = ("input_ids", "attention_mask", "token_type_ids")
        best = (-np.inf, (0, 0))
        for begin in range(0, len(encoded["input_ids"]), batch):
            with self.torch.inference_mode():
                found = self.model(**{name: encoded[name][begin : begin + batch] for name in names})
            for row, (starts, ends) in enumerate(zip(found.start_logits, found.end_logits, strict=True), begin):
                inside = self.torch.tensor([kind == 1 for kind in encoded.sequence_ids(row)])
                starts, ends = (part.masked_fill(~inside, -1e4).softmax(-1).numpy() for part in (starts, ends))
                table = np.tril(np.triu(np.outer(starts, ends)), 63)
                first, last = divmod(int(table.argmax()), len(ends))
                offsets = encoded["offset_mapping"][row]
                best = max(best, (float(table[first, last]), (int(offsets[first][0]), int(offsets[last][1]))))
        return text[slice(*best[1])], best[0]


if __name__ == "__main__":
    main()
