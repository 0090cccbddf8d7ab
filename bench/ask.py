"""Measure the time to answer one question over a long report, compared with torch in 32 bits and sliding windows.

python bench/ask.py READER [--words 3000] [--length 900] [--questions 7] [--checkpoint FOLDER]

READER is a folder that capr train reader made. capr reads the report in uniform paragraphs of --length characters, with
model.onnx; `ranked` adds the scores of the ranker, if the folder has a ranked.json. capr takes turns with torch, which
runs its own weights (READER/torch, or --checkpoint: any Hugging Face model for question answering). torch reads the
whole report in windows of 384 word pieces that share 128, as the question answering pipeline of transformers did.
Version 5 removed that pipeline, so this script repeats its steps: read all windows in batches, and return the best span
of all windows. The report consists of the sample notes.
"""

import argparse
import os
import time
from pathlib import Path
from statistics import median

import numpy as np

from capr import samples, uniform
from capr.runtime.reader import OnnxReader
from capr.search.models import answer_reader

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
    arguments = parser.parse_args()
    cores = len(os.sched_getaffinity(0))
    text = report(arguments.words)
    paragraphs = [span.of(text) for span in uniform(text, arguments.length)]
    reader, peer = OnnxReader(arguments.reader), Peer(arguments.checkpoint or arguments.reader / "torch", cores)
    ranked_reader = answer_reader(arguments.reader)
    systems = {
        "capr": lambda question: reader.read(question, paragraphs),
        "ranked": lambda question: ranked_reader.read(question, paragraphs),
        "torch": lambda question: peer.answer(question, text),
    }
    seconds = {name: [] for name in systems}
    for turn in range(arguments.questions + 1):
        for name, ask in systems.items():
            start = time.perf_counter()
            ask(QUESTIONS[turn % len(QUESTIONS)])
            if turn:  # the first turn is slower
                seconds[name].append(time.perf_counter() - start)
    print(f"{len(text.split()):,} words, {len(paragraphs)} paragraphs of {arguments.length} characters, {cores} cores")
    for name, times in seconds.items():
        print(f"{name:6} {median(times):.2f} s a question ({min(times):.2f} to {max(times):.2f})")
    for name in ("capr", "ranked"):
        ratios = [slow / fast for slow, fast in zip(seconds["torch"], seconds[name], strict=True)]
        print(f"{name} is {median(ratios):.2f} times as fast ({min(ratios):.2f} to {max(ratios):.2f})")


def report(words):
    """Return the first `words` words of the sample notes, as one text."""
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
        """Return the best span of the whole text, and its probability."""
        encoded = self.tokenizer(
            question,
            text,
            max_length=384,
            stride=128,
            truncation="only_second",
            padding=True,
            return_tensors="pt",
            return_overflowing_tokens=True,
            return_offsets_mapping=True,
            return_token_type_ids=True,
        )
        names = ("input_ids", "attention_mask", "token_type_ids")
        best = (-np.inf, (0, 0))
        for begin in range(0, len(encoded["input_ids"]), batch):
            with self.torch.inference_mode():
                output = self.model(**{name: encoded[name][begin : begin + batch] for name in names})
            for row, (starts, ends) in enumerate(zip(output.start_logits, output.end_logits, strict=True), begin):
                inside = self.torch.tensor([kind == 1 for kind in encoded.sequence_ids(row)])
                starts, ends = (logits.masked_fill(~inside, -1e4).softmax(-1).numpy() for logits in (starts, ends))
                table = np.tril(np.triu(np.outer(starts, ends)), 63)
                first, last = divmod(int(table.argmax()), len(ends))
                offsets = encoded["offset_mapping"][row]
                best = max(best, (float(table[first, last]), (int(offsets[first][0]), int(offsets[last][1]))))
        return text[slice(*best[1])], best[0]


if __name__ == "__main__":
    main()
