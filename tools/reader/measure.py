"""Measure readers in 32 bits on a GPU: over lengths of paragraphs, or compared with the 8 bits of built-in models.

python tools/reader/measure.py lengths FILE OUT READER…
python tools/reader/measure.py bits FILE… OUT READER

FILE is a file from prepare.py, READER a folder from train.py. `lengths` measures the data of the paper's figure, as
`capr evaluate reports --lengths` does, for one reader with several seeds, and writes the results to OUT. `draw OUT
PICTURE` draws the figure and needs matplotlib. `bits` measures the loss from 8 bits, in uniform paragraphs and without
the ranker. Besides capr itself, the script needs torch, transformers and onnxruntime.
"""

import json
import pickle
import sys
import time
from pathlib import Path

import torch

from capr.evaluate.reports import measure, over_lengths
from capr.models.family import Schedule
from capr.models.reader import GPU_PIECES, ReaderFamily, inputs_of
from capr.runtime.extraction import AnswerExtractor
from capr.runtime.reader import OnnxReader, ReadAnswer, sigmoid
from capr.segment.paragraphs import Paragraphs
from capr.supervise.reports import read_reports

LENGTHS = (300, 600, 1000, 1500, 2000)


class TorchReader:
    """A reader in 32 bits, without a ranker."""

    def __init__(self, folder):
        self.manifest = json.loads((folder / "manifest.json").read_text())
        self.name, self.threshold = folder.name, self.manifest.get("threshold", 0.5)
        objective = ReaderFamily(base=str(folder)).objective(Schedule().device)
        self._model, self._reader = objective.model.to(objective.tokenizer.device).eval(), objective.tokenizer
        self._extractor = AnswerExtractor(objective.cutter, self._scores, self.manifest["answer"], GPU_PIECES)

    def read(self, question, paragraphs, best=1):
        temperature, bias = self.manifest.get("temperature", 1.0), self.manifest.get("bias", 0.0)
        answers = self._extractor.extract([(question, paragraph) for paragraph in paragraphs], best)
        return [
            [ReadAnswer(answer.span, sigmoid(answer.margin / temperature + bias)) for answer in paragraph_answers]
            for paragraph_answers in answers
        ]

    @torch.no_grad()
    def _scores(self, windows):
        return self._model(**self._reader.to_device(inputs_of(windows, self._reader))).float().cpu().numpy()


def lengths(file, out, *folders):
    """Measure readers over lengths of paragraphs, and write the results."""
    reports = read_reports(Path(file))
    results = over_lengths([TorchReader(Path(folder)) for folder in folders], reports, LENGTHS)
    Path(out).write_bytes(pickle.dumps(results))
    for result in results:
        show(result.reader, result)


def bits(*arguments):
    """Measure a reader in 32 and in 8 bits, and write the measures and the share of equal spans."""
    *files, out, folder = arguments
    readers = {"32 bits": TorchReader(Path(folder)), "8 bits": OnnxReader(folder)}
    rows = []
    for file in files:
        reports = read_reports(Path(file))
        results = {}
        for name, reader in readers.items():
            start = time.monotonic()
            results[name] = measure(reader, reports, Paragraphs("uniform"))
            show(f"{Path(file).name} {name} {time.monotonic() - start:.0f} s", results[name])
        same_spans = [
            first.span == second.span
            for first, second in zip(*(result.outcomes for result in results.values()), strict=True)
        ]
        rows.append({"file": Path(file).name, "same": sum(same_spans) / len(same_spans)})
        rows[-1] |= {name: result.as_json() for name, result in results.items()}
    Path(out).write_text(json.dumps(rows, indent=1) + "\n")


def draw(measured, picture):
    from capr.evaluate.report_plots import plot_lengths

    plot_lengths(Path(picture), pickle.loads(Path(measured).read_bytes()))


def show(name, result):
    values = {measure: round(100 * value, 1) for measure, value in result.measures.items()}
    print(f"{name} {result.cut} {result.length:.0f}", values, flush=True)


if __name__ == "__main__":
    {"lengths": lengths, "bits": bits, "draw": draw}[sys.argv[1]](*sys.argv[2:])
