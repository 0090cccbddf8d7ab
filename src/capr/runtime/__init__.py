"""Inference on ONNX Runtime, without torch. A model is a folder with a manifest that says how to run it."""
