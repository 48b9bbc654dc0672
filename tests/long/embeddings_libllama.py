#!/usr/bin/env python3
"""Compares the embeddings of tests/goldens/embeddings with those of libllama on the GGUF files.

Made with llama-cpp-python 0.3.36, gguf 0.19.0, numpy 2.4.6:
  python tests/long/embeddings_libllama.py

So that the reader of Hugging Face folders and the writer of GGUF files cannot agree on an error.
Each file is first rewritten with f32 weights; what remains is mostly libllama's GELU, which is the
tanh form, read from a table in f16. The texts are tokenized by libllama, and the ids compared too.
"""

import json
import pathlib
import tempfile

import llama_cpp
import numpy as np

import arch_libllama

FOLDER = arch_libllama.ARCH.parent / "embeddings"
LIMIT = 1e-2  # of the largest value of the embedding
POOLINGS = {"mean": llama_cpp.LLAMA_POOLING_TYPE_MEAN, "cls": llama_cpp.LLAMA_POOLING_TYPE_CLS,
            "last": llama_cpp.LLAMA_POOLING_TYPE_LAST}


def embeddings(path, golden, pooling):
    model = llama_cpp.Llama(str(path), n_ctx=40, n_batch=256, n_threads=1, embedding=True,
                            pooling_type=POOLINGS[pooling], n_gpu_layers=0, verbose=False)
    for text, ids in zip(golden["texts"], golden["text_ids"]):
        assert model.tokenize(text.encode()) == ids, (text, model.tokenize(text.encode()), ids)
    vectors = [np.array(model.embed(text)) for text in golden["texts"]]
    model.close()
    return vectors


def main():
    bad = 0
    for file in sorted(FOLDER.glob("*/golden.json")):
        golden = json.loads(file.read_text())
        with tempfile.TemporaryDirectory() as scratch:
            path = pathlib.Path(scratch) / "model.gguf"
            arch_libllama.rewrite(file.parent / "model.gguf", path, True, False)
            for pooling in POOLINGS:
                worst = 0.0
                for wanted, got in zip(golden["text_embeddings"],
                                       embeddings(path, golden, pooling)):
                    truth = np.array(wanted[pooling]["plain"])
                    worst = max(worst, np.abs(truth - got).max() / np.abs(truth).max())
                print(f"{file.parent.name:10} {pooling:5} {worst:.2e}", flush=True)
                bad += worst > LIMIT
    raise SystemExit(1 if bad else 0)


if __name__ == "__main__":
    main()
