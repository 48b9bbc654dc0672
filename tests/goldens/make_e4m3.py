#!/usr/bin/env python3
"""Writes tests/goldens/quant/e4m3.bin: the 256 values of F8_E4M3 as little-endian fp32.

Made with torch 2.15.0 (float8_e4m3fn):  python tests/goldens/make_e4m3.py
"""

import pathlib

import torch

codes = torch.arange(256, dtype=torch.uint8).view(torch.float8_e4m3fn)
out = pathlib.Path(__file__).parent / "quant/e4m3.bin"
codes.float().numpy().astype("<f4").tofile(out)
