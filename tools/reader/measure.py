"""Measures readers in 32 bits on a GPU: over lengths of paragraphs, or beside the 8 bits that ship.

python tools/reader/measure.py lengths FILE OUT READER…
python tools/reader/measure.py bits FILE… OUT READER

FILE is of prepare.py, READER a folder that train.py has made. `lengths` is the paper's figure, as `capr evaluate
reports --lengths` makes it, for one recipe with several seeds, and writes what is measured to OUT; `draw OUT PICTURE`
draws it, where matplotlib is. `bits` says what 8 bits cost, in uniform paragraphs and without the ranker. Besides capr
itself it needs torch, transformers and onnxruntime; what else capr imports is not used.
"""

import json
import pickle
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import standins  # noqa: F401
import torch

from capr.evaluate.reports import measure, over_lengths
from capr.search.reader import OnnxReader, Reading, sigmoid
from capr.search.reading import Extractor
from capr.segment.paragraphs import Paragraphs
from capr.supervise.reports import read_reports
from capr.train.loop import Schedule
from capr.train.reader import GPU_PIECES, Recipe, build, inputs_of

LENGTHS = (300, 600, 1000, 1500, 2000)


class TorchReader:
    """A reader in 32 bits, without a ranker."""

    def __init__(self, folder):
        self.manifest = json.loads((folder / "manifest.json").read_text())
        self.name, self.threshold = folder.name, self.manifest.get("threshold", 0.5)
        objective = build(Recipe(str(folder)), Schedule().device)
        self._model, self._reader = objective.model.to(objective.reader.device).eval(), objective.reader
        self._extractor = Extractor(objective.cutter, self._scores, self.manifest["answer"], GPU_PIECES)

    def read(self, question, paragraphs, best=1):
        temperature, bias = self.manifest.get("temperature", 1.0), self.manifest.get("bias", 0.0)
        found = self._extractor.extract([(question, paragraph) for paragraph in paragraphs], best)
        return [[Reading(one.span, sigmoid(one.margin / temperature + bias)) for one in some] for some in found]

    @torch.no_grad()
    def _scores(self, windows):
        return self._model(**self._reader.moved(inputs_of(windows, self._reader))).float().cpu().numpy()


def lengths(file, out, *folders):
    reports = read_reports(Path(file))
    measured = over_lengths([TorchReader(Path(folder)) for folder in folders], reports, LENGTHS)
    Path(out).write_bytes(pickle.dumps(measured))
    for one in measured:
        show(one.reader, one)


def bits(*given):
    *files, out, folder = given
    readers = {"32 bits": TorchReader(Path(folder)), "8 bits": OnnxReader(folder)}
    rows = []
    for file in files:
        reports = read_reports(Path(file))
        both = {}
        for name, reader in readers.items():
            begun = time.monotonic()
            both[name] = measure(reader, reports, Paragraphs("uniform"))
            show(f"{Path(file).name} {name} {time.monotonic() - begun:.0f} s", both[name])
        same = [one.span == two.span for one, two in zip(*(one.outcomes for one in both.values()), strict=True)]
        rows.append({"file": Path(file).name, "same": sum(same) / len(same)})
        rows[-1] |= {name: one.as_json() for name, one in both.items()}
    Path(out).write_text(json.dumps(rows, indent=1) + "\n")


def draw(measured, picture):
    from capr.evaluate.report_plots import plot_lengths

    plot_lengths(Path(picture), pickle.loads(Path(measured).read_bytes()))


def show(name, measured):
    values = {measure: round(100 * value, 1) for measure, value in measured.measures.items()}
    print(f"{name} {measured.cut} {measured.length:.0f}", values, flush=True)


if __name__ == "__main__":
    {"lengths": lengths, "bits": bits, "draw": draw}[sys.argv[1]](*sys.argv[2:])
