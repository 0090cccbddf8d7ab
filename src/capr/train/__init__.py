"""Training: loops, losses, checkpoints and export to ONNX. Needs the extra `train`."""
