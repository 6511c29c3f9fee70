#!/usr/bin/env python3
"""Writes model.onnx, input.npy and output.npy here: a Swin transformer of two small stages with weights of seed 1, as
PyTorch exports it, and what PyTorch computes. Needs Debian's python3-torchvision (0.14; torch 1.13)."""
import pathlib

import numpy
import torch
from torchvision.models.swin_transformer import SwinTransformer

here = pathlib.Path(__file__).resolve().parent
torch.manual_seed(1)
# 6 × 6 patches in windows of 4 × 4: rolled, padded by computed amounts, and masked.
model = SwinTransformer(patch_size=[4, 4], embed_dim=8, depths=[2, 1], num_heads=[2, 2], window_size=[4, 4],
                        num_classes=5).eval()
for parameter in model.parameters():  # the weights of a fresh model are so small that mistakes hide in them
    torch.nn.init.uniform_(parameter, -0.5, 0.5)
picture = torch.rand(1, 3, 24, 24)
torch.onnx.export(model, picture, str(here / "model.onnx"), opset_version=14, input_names=["input"],
                  output_names=["output"], dynamic_axes={"input": {0: "batch"}})
numpy.save(here / "input.npy", picture.numpy())
numpy.save(here / "output.npy", model(picture).detach().numpy())
print(f"written by torch {torch.__version__}")
