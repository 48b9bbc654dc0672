"""Folders driven as a user drives them. Usage: folder_test.py PROGRAM folder"""

import json
import sys
import unittest

from common import Case, GROUP, ROOT, call_json


class Folder(Case):
    """A Llama-3-style checkpoint: the folder, its GGUF conversion, and its load in 8 and 4 bits."""

    FOLDER = ROOT / "tests/goldens/arch/llama_llama3"

    def setUp(self):
        super().setUp()
        self.golden = json.loads((self.FOLDER / "golden.json").read_text())

    def answer(self, model, *args):
        return call_json("run", model, "-p", self.golden["text"], "-n", 12, "--ignore-eos", *args)

    def test_folder_and_file_answer_as_transformers(self):
        for model in (self.FOLDER, self.FOLDER / "model.gguf"):
            with self.subTest(model=model.name):
                out = self.answer(model)
                self.assertEqual(out["prompt_ids"], self.golden["text_ids"])
                self.assertEqual(out["token_ids"], self.golden["continuation_ids"])

    def test_quantised_at_load(self):
        for weights in ("q8_0", "q4_0"):
            for model in (self.FOLDER, self.FOLDER / "model.gguf"):
                with self.subTest(weights=weights, model=model.name):
                    out = self.answer(model, "--weights", weights)
                    self.assertEqual(len(out["token_ids"]), 12)
        self.assert_error("run", self.FOLDER, "-p", "a", "--weights", "q9", status=2,
                          mentions=["q9"])

    def test_folder_and_file_say_the_same_and_int8_answers(self):
        texts = [self.answer(model)["text"] for model in (self.FOLDER, self.FOLDER / "model.gguf")]
        self.assertEqual(texts[0], texts[1])
        self.assertTrue(texts[0])
        self.assertTrue(self.answer(self.FOLDER, "--weights", "q8_0")["text"])

    def test_weights_stored_as_codes(self):
        for name in ("llama_fp8", "llama_int8", "llama_int4", "qwen3_fp8", "mistral_fp8"):
            folder = self.FOLDER.parent / name
            golden = json.loads((folder / "golden.json").read_text())
            with self.subTest(folder=name):
                args = ("run", folder, "-p", golden["text"], "-n", 12, "--ignore-eos")
                out = call_json(*args, "--reference")
                self.assertEqual(out["token_ids"], golden["continuation_ids"])
                self.assertEqual(len(call_json(*args)["token_ids"]), 12)
        fp8 = self.FOLDER.parent / "llama_fp8"
        self.assert_error("run", fp8, "-p", "a", "--weights", "q8_0", mentions=["blocks of 32"])
        int8 = self.FOLDER.parent / "llama_int8"
        out = call_json("run", int8, "-p", "a", "-n", 3, "--ignore-eos", "--weights", "q8_0")
        self.assertEqual(len(out["token_ids"]), 3)

    def test_image_part_is_left_out_and_said(self):
        folder = self.FOLDER.parent / "gemma3_images"
        golden = json.loads((folder / "golden.json").read_text())
        out = call_json("run", folder, "-p", golden["text"], "-n", 12, "--ignore-eos",
                        "--reference")
        self.assertEqual(out["token_ids"], golden["continuation_ids"])
        about = call_json("inspect", folder)
        self.assertTrue(about["runs"])
        self.assertIn("images and sound are not supported",
                      about["metadata"]["general.left_out"])

    def test_vocabularies_without_tokenizer_json(self):
        for name in ("tekken", "llama3_ranks"):
            folder = ROOT / "tests/goldens/folders" / name
            golden = json.loads((folder / "golden.json").read_text())
            for text, ids in zip(golden["texts"], golden["ids"]):
                self.assertEqual(call_json("tokenize", folder, stdin=text.encode())["ids"], ids)

    def test_chat_and_inspect(self):
        self.assertEqual(len(call_json("run", self.FOLDER, "--chat", "-p", "hi", "-n", 3,
                                       "--ignore-eos")["token_ids"]), 3)
        self.assertEqual(call_json("inspect", self.FOLDER)["architecture"], "llama")

    def test_folder_that_cannot_run_is_inspected_with_the_reason(self):
        for name in ("tokenizer.json", "tokenizer_config.json"):
            self.write(name, (self.FOLDER / name).read_bytes())
        self.write("config.json", '{"model_type": "lhama"}')
        out = call_json("inspect", self.folder)
        self.assertFalse(out["runs"])
        self.assertIn("lhama", out["reason"])
        ids = call_json("tokenize", self.folder, "-p", self.golden["text"])["ids"]
        self.assertEqual(ids, self.golden["text_ids"])

    def test_structured_output(self):
        schema = self.write("schema.json", '{"type": "array", "items": {"enum": [1, 23]}, '
                                           '"minItems": 2, "maxItems": 2}')
        out = call_json("run", self.FOLDER, "-p", "hi", "-n", 200, "--json-schema", schema)
        self.assertEqual(out["finish_reason"], "stop")
        self.assertEqual(len(json.loads(out["text"])), 2)
        out = call_json("run", self.FOLDER, "-p", "hi", "-n", 200, "--regex", "(red|green) [0-9]")
        self.assertRegex(out["text"], "^(red|green) [0-9]$")
        bad = self.write("bad.json", '{"if": {}}')
        self.assert_error("run", self.FOLDER, "-p", "hi", "--json-schema", bad, mentions=["if"])


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], GROUP.capitalize(), "-v"])
