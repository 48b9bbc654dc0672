"""Asks a model one thing: hello.py MODEL ["prompt"]"""
import sys

from sits_optima import Model

if len(sys.argv) < 2:
    sys.exit(f"usage: {sys.argv[0]} MODEL [\"prompt\"]")
prompt = sys.argv[2] if len(sys.argv) > 2 else "The capital of France is"
with Model(sys.argv[1]) as model:
    print(prompt + model.generate(prompt, max_tokens=24).text)
