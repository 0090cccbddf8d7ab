"""Export a checkpoint in the Hugging Face layout as an encoder in 8 bits; needs the extra `train`.

python bench/encoder.py CHECKPOINT FOLDER [--pooling mean]
"""

from __future__ import annotations

import argparse
import json
import shutil
from pathlib import Path

import torch
from transformers import AutoModel

from capr.models.export import export


class TokenStates(torch.nn.Module):
    """A network that returns the vectors of all tokens."""

    def __init__(self, checkpoint: Path) -> None:
        super().__init__()
        self.model = AutoModel.from_pretrained(checkpoint, attn_implementation="eager")

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
        return self.model(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkpoint", type=Path, help="a folder with config.json, model.safetensors and tokenizer.json")
    parser.add_argument("folder", type=Path, help="the folder to make")
    parser.add_argument("--pooling", choices=["cls", "mean"], default="mean")
    arguments = parser.parse_args()
    model = TokenStates(arguments.checkpoint)
    axes = {name: {0: "texts", 1: "pieces"} for name in ("input_ids", "attention_mask")}
    ones = torch.ones(2, 8, dtype=torch.long)
    export(model, (ones, ones), axes, arguments.folder)
    (arguments.folder / "model.fp32.onnx").unlink()
    shutil.copy(arguments.checkpoint / "tokenizer.json", arguments.folder)
    manifest = {
        "name": arguments.checkpoint.name,
        "dimensions": model.model.config.hidden_size,
        "pooling": arguments.pooling,
    }
    (arguments.folder / "manifest.json").write_text(json.dumps(manifest), "utf-8")


if __name__ == "__main__":
    main()
