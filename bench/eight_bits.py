"""Networks in 8 bits: speed, distance from 32 bits, and whether a vector depends on the batch.

    python bench/eight_bits.py src/capr/weights/encoder

The folder has an encoder, whose weights are restored to 32 bits and quantised in two ways: with a scale for each row of
the activations, as `capr train` exports networks, and with one scale for each tensor (ONNX Runtime's dynamic
quantisation). All networks take turns to read the same passages and sentences of the sample notes: in batches of 512
word pieces, and each text alone.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

import numpy as np
from onnxruntime.quantization import QuantType, quantize_dynamic
from tables import table

import capr
from capr.models.bases import load_encoder
from capr.models.bi import BiEncoder, BiEncoderForExport
from capr.models.export import export, piece_example
from capr.runtime.onnx import TOGETHER, batches, open_network
from capr.runtime.pieces import NAMES, load_tokenizer, padded

NOTES, TEXTS, ROUNDS, PIECES = 12, 150, 3, 288


def main() -> None:
    """Print a table for each kind of text."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("encoder", type=Path)
    folder = parser.parse_args().encoder
    tokenizer = load_tokenizer(folder, PIECES)
    notes = list(capr.read(capr.samples.folder() / "notes"))[:NOTES]
    texts = {
        "passages": [note[passage.span] for note in notes for passage in capr.passages(note)][:TEXTS],
        "sentences": [span.of(note.text) for note in notes for span in capr.sentences(note.text)][:TEXTS],
    }
    with tempfile.TemporaryDirectory() as temporary:
        networks = make_networks(folder, Path(temporary))
        for kind, kind_texts in texts.items():
            measure(kind, tokenizer.encode_batch_fast(kind_texts), networks)


def make_networks(folder: Path, out: Path) -> dict:
    """Quantise the encoder in both ways, and open all three networks."""
    encoder = load_encoder(str(folder))
    export(BiEncoderForExport(BiEncoder(encoder), encoder, NAMES), *piece_example(NAMES, "texts"), out)
    quantize_dynamic(
        out / "model.fp32.onnx",
        out / "tensor.onnx",
        op_types_to_quantize=["MatMul", "Gather"],
        weight_type=QuantType.QInt8,
        per_channel=True,
    )
    files = {"32 bits": "model.fp32.onnx", "8 bits, a scale per tensor": "tensor.onnx"}
    files["8 bits, a scale per row"] = "model.onnx"
    return {name: open_network(out / file) for name, file in files.items()}


def measure(kind: str, encodings: list, networks: dict) -> None:
    """Print speed, cosine with 32 bits, and the largest difference between a batch and a text alone."""
    alone = [[position] for position in range(len(encodings))]
    together = list(batches([len(encoding.ids) for encoding in encodings], TOGETHER))
    seconds: dict = {}
    vectors: dict = {}
    for _ in range(ROUNDS):
        for name, network in networks.items():
            for way, parts in (("together", together), ("alone", alone)):
                start = time.perf_counter()
                vectors[name, way] = read(network, encodings, parts)
                seconds.setdefault((name, way), []).append(time.perf_counter() - start)
    truth = vectors["32 bits", "alone"]
    rows = []
    for name in networks:
        cosines = (vectors[name, "together"] * truth).sum(1)
        difference = np.abs(vectors[name, "together"] - vectors[name, "alone"]).max()
        speeds = [len(encodings) / min(seconds[name, way]) for way in ("together", "alone")]
        cells = [f"{speed:.0f}" for speed in speeds]
        rows.append([name, *cells, f"{cosines.mean():.4f}", f"{cosines.min():.4f}", f"{difference:.1e}"])
    table(f"{kind}|together/s|alone/s|mean cosine|lowest|batch against alone", rows)


def read(network: object, encodings: list, parts: list[list[int]]) -> np.ndarray:
    """Return the vector of each text, of length 1."""
    vectors = np.zeros((len(encodings), network.get_outputs()[0].shape[1]), np.float32)
    for part in parts:
        vectors[part] = network.run(None, padded([encodings[position] for position in part]))[0]
    return vectors


if __name__ == "__main__":
    main()
