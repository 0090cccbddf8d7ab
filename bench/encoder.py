"""Makes an encoder's folder, 8 bits, of a checkpoint in the Hugging Face layout; needs the extra `train`.

python bench/encoder.py CHECKPOINT FOLDER [--pooling mean]
"""

from __future__ import annotations

import argparse
import json
import shutil
from pathlib import Path

import torch
from transformers import AutoModel

from capr.train.export import export


class Tokens(torch.nn.Module):
    """The vectors of all tokens."""

    def __init__(self, checkpoint: Path) -> None:
        super().__init__()
        self.model = AutoModel.from_pretrained(checkpoint, attn_implementation="eager")

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
        return self.model(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkpoint", type=Path, help="folder with config.json, model.safetensors and tokenizer.json")
    parser.add_argument("folder", type=Path, help="to make")
    parser.add_argument("--pooling", choices=["cls", "mean"], default="mean")
    given = parser.parse_args()
    model = Tokens(given.checkpoint)
    axes = {name: {0: "texts", 1: "pieces"} for name in ("input_ids", "attention_mask")}
    ones = torch.ones(2, 8, dtype=torch.long)
    export(model, (ones, ones), axes, given.folder)
    (given.folder / "model.fp32.onnx").unlink()
    shutil.copy(given.checkpoint / "tokenizer.json", given.folder)
    manifest = {"name": given.checkpoint.name, "dimensions": model.model.config.hidden_size, "pooling": given.pooling}
    (given.folder / "manifest.json").write_text(json.dumps(manifest), "utf-8")


if __name__ == "__main__":
    main()
