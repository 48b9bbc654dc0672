"""Drives the program optima as a user does. Usage: optima_test.py PROGRAM GROUP

Models: the tiny random ones of tests/goldens/tiny. Every error must be one line on stderr, nothing
on stdout and a non-zero exit status. Only the standard library is used.
"""

import json
import math
import signal
import statistics
import struct
import subprocess
import sys
import unittest

from common import CONTEXT, Case, GROUP, MODELS, PROGRAM, ROOT, TEXT, call, call_json, each_model


class Run(Case):
    def run_json(self, model, *args):
        return call_json("run", model, "-p", "the cat", "-n", 12, "--ignore-eos", "-t", 1, *args)

    @each_model
    def test_object(self, model):
        out = self.run_json(model)
        self.assertEqual(set(out), {"text", "prompt_ids", "token_ids", "finish_reason",
                                    "cached_tokens", "cache_miss", "draft_tokens", "draft_tokens_accepted",
                                    "timings"})
        self.assertEqual(set(out["timings"]), {"load_ms", "ttft_ms", "prefill_tokens_per_s",
                                               "decode_tokens_per_s"})
        self.assertEqual(len(out["token_ids"]), 12)
        self.assertEqual(out["finish_reason"], "length")
        self.assertEqual(out["cached_tokens"], 0)
        self.assertTrue(all(value > 0 for value in out["timings"].values()), out["timings"])
        ids = call("tokenize", model, "--ids", "-p", "the cat").stdout.split()
        self.assertEqual(out["prompt_ids"], [int(i) for i in ids])

    @each_model
    def test_greedy_repeats_and_streams_the_same_text(self, model):
        first, again = self.run_json(model), self.run_json(model)
        self.assertEqual(first["token_ids"], again["token_ids"])
        plain = call("run", model, "-p", "the cat", "-n", 12, "--ignore-eos", "-t", 1)
        self.assertEqual(plain.stdout.decode(errors="replace"), first["text"] + "\n")
        self.assertEqual(plain.stderr, b"")

    @each_model
    def test_threads_and_stdin_change_nothing(self, model):
        one = self.run_json(model)
        two = call_json("run", model, "-n", 12, "--ignore-eos", "-t", 2, stdin=b"the cat")
        self.assertEqual(one["prompt_ids"], two["prompt_ids"])
        self.assertEqual(one["token_ids"], two["token_ids"])

    @each_model
    def test_seed_decides(self, model):
        draws = [tuple(self.run_json(model, "--temp", 1.5, "--seed", seed)["token_ids"])
                 for seed in (7, 7, 8, 9)]
        self.assertEqual(draws[0], draws[1])
        self.assertGreater(len(set(draws)), 1)

    @each_model
    def test_samples_come_best_first_and_share_the_prompt(self, model):
        out = self.run_json(model, "--temp", 1.5, "--seed", 7, "--samples", 4, "--reference")
        samples = out["samples"]
        self.assertEqual(len(samples), 4)
        self.assertEqual(out["token_ids"], samples[0]["token_ids"])
        probable = [sample["mean_logprob"] for sample in samples]
        self.assertEqual(probable, sorted(probable, reverse=True))
        self.assertEqual(out["cached_tokens"], len(out["prompt_ids"]) - 1)
        alone = [self.run_json(model, "--temp", 1.5, "--seed", seed, "--reference")["token_ids"]
                 for seed in (7, 8, 9, 10)]
        self.assertCountEqual([sample["token_ids"] for sample in samples], alone)
        self.assert_error("run", model, "-p", "a", "--samples", 2, status=2, mentions=["--temp"])

    @each_model
    def test_drafts_change_nothing(self, model):
        plain = self.run_json(model, "--reference")
        guessed = self.run_json(model, "--reference", "--draft-tokens", 6)
        self.assertEqual(plain["token_ids"], guessed["token_ids"])
        self.assertEqual(plain["draft_tokens"], 0)
        self.assertGreaterEqual(guessed["draft_tokens"], guessed["draft_tokens_accepted"])
        itself = self.run_json(model, "--reference", "--draft-tokens", 6, "--draft-model", model)
        self.assertEqual(plain["token_ids"], itself["token_ids"])
        self.assertEqual(itself["draft_tokens"], itself["draft_tokens_accepted"])
        other = next(path for path in MODELS if ("gemma" in path.name) != ("gemma" in model.name))
        self.assert_error("run", model, "-p", "a", "--draft-model", other,
                          mentions=["vocabulary", "297", "371"])

    @each_model
    def test_reference_path(self, model):
        out = self.run_json(model, "--reference")
        self.assertEqual(len(out["token_ids"]), 12)

    @each_model
    def test_context_ends_it(self, model):
        out = call_json("run", model, "-p", "the cat", "--ignore-eos", "-c", CONTEXT, "-t", 1)
        self.assertEqual(out["finish_reason"], "context")
        used = len(out["prompt_ids"]) + len(out["token_ids"])
        self.assertIn(used, (CONTEXT, CONTEXT + 1))

    def test_chat_reads_lines(self):
        template = [m for m in MODELS if call_json("inspect", m)["metadata"].get(
            "tokenizer.chat_template")]
        self.assertTrue(template, "no tiny model has a chat template")
        for model in template:
            with self.subTest(model=model.name):
                out = call("chat", model, "-n", 4, "--ignore-eos", "-t", 1, stdin=b"hi\nand?\n")
                self.assertEqual(out.stderr, b"")
                once = call_json("run", model, "--chat", "-p", "hi", "-n", 4, "--ignore-eos",
                                 "-t", 1)
                self.assertTrue(out.stdout.decode(errors="replace").startswith(once["text"]))

    def interrupted_answer(self, model, tokens):
        """What `chat` prints for "hi" when Ctrl-C comes after the first byte; then it must go on."""
        chat = subprocess.Popen([PROGRAM, "chat", str(model), "-n", str(tokens), "--ignore-eos",
                                 "-t", "1"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, bufsize=0)
        try:
            chat.stdin.write(b"hi\n")
            first = chat.stdout.read(1)
            chat.send_signal(signal.SIGINT)
            rest, errors = chat.communicate(b"and?\n", timeout=60)
            self.assertEqual((chat.returncode, errors), (0, b""))
            return (first + rest).rsplit(b"\n", 2)[0]
        finally:
            chat.kill()
            chat.wait()

    def test_interrupt_stops_the_answer_and_not_the_program(self):
        model = next(m for m in MODELS if call_json("inspect", m)["metadata"].get(
            "tokenizer.chat_template"))
        whole = call_json("run", model, "--chat", "-p", "hi", "-n", 200, "--ignore-eos", "-t", 1)
        length = len(whole["text"].encode(errors="replace"))
        attempts = 30  # A short answer may be over before the signal comes.
        self.assertTrue(any(len(self.interrupted_answer(model, 200)) < length
                            for _ in range(attempts)))


class Embed(Case):
    BERT = ROOT / "tests/goldens/embeddings/bert"

    def assert_near(self, found, wanted):
        largest = max(abs(x) for x in wanted)
        self.assertEqual(len(found), len(wanted))
        for a, b in zip(found, wanted):
            self.assertAlmostEqual(a, b, delta=2e-3 * largest)

    def test_folder_and_file_are_as_in_transformers(self):
        golden = json.loads((self.BERT / "golden.json").read_text())
        for model in (self.BERT, self.BERT / "model.gguf"):
            for pooling in ("mean", "cls", "last"):
                out = call_json("embed", model, *golden["texts"], "--pooling", pooling,
                                "--normalise", "l2", "--reference")
                self.assertEqual([e["text"] for e in out["embeddings"]], golden["texts"])
                for entry, wanted in zip(out["embeddings"], golden["text_embeddings"]):
                    self.assert_near(entry["embedding"], wanted[pooling]["l2"])

    def test_stdin_and_option_give_the_same_line(self):
        one = call("embed", self.BERT, stdin=b"a ship").stdout
        self.assertEqual(one, call("embed", self.BERT, "-p", "a ship").stdout)
        self.assertEqual(len(one.split()), 40)
        self.assertAlmostEqual(math.hypot(*map(float, one.split())), 1, places=5)

    @each_model
    def test_decoders(self, model):
        plain = call_json("embed", model, "the cat", "a dog", "--normalise", "l2")
        self.assertEqual(plain["width"], call_json("inspect", model)["embedding_width"])
        for entry in plain["embeddings"]:
            self.assertAlmostEqual(math.hypot(*entry["embedding"]), 1, places=5)

    def test_inspect(self):
        out = call_json("inspect", self.BERT)
        self.assertEqual((out["generates"], out["pooling"], out["normalised"]),
                         (False, "mean", True))

    def test_misuse(self):
        self.assert_error("run", self.BERT, "-p", "a", mentions=["encoder"])
        self.assert_error("embed", self.BERT, "a", "--pooling", "max", status=2, mentions=["max"])
        self.assert_error("embed", self.BERT, "a " * 60, mentions=["CONTEXT_FULL", 62, 40])


class Text(Case):
    @each_model
    def test_round_trip(self, model):
        for raw in (TEXT.encode(), b"", b"a", b"\xff\xfe broken \xc3", b"nul \x00 inside\r\n"):
            ids = call("tokenize", model, "--ids", "--no-add-special", "--no-parse-special",
                       stdin=raw).stdout
            back = call("detokenize", model, stdin=ids).stdout
            self.assertEqual(back, raw)

    @each_model
    def test_forms_agree(self, model):
        line = call("tokenize", model, "--ids", "-p", TEXT).stdout
        self.assertTrue(line.endswith(b"\n"))
        ids = [int(i) for i in line.split()]
        out = call_json("tokenize", model, "-p", TEXT)
        self.assertEqual((out["ids"], out["count"]), (ids, len(ids)))
        table = call("tokenize", model, "-p", TEXT).stdout.decode(errors="replace")
        self.assertTrue(table.startswith(f"{ids[0]}\t"))
        by_option = call("detokenize", model, "--ids", ",".join(map(str, ids))).stdout
        self.assertEqual(by_option, call("detokenize", model, stdin=line).stdout)

    @each_model
    def test_special_tokens(self, model):
        about = call_json("inspect", model)
        with_bos = call_json("tokenize", model, "-p", "a")["ids"]
        without = call_json("tokenize", model, "-p", "a", "--no-add-special")["ids"]
        self.assertEqual(with_bos[0] == about["bos"], about["adds_bos"])
        self.assertEqual(len(with_bos) - len(without),
                         int(about["adds_bos"]) + int(about["adds_eos"]))


class Template(Case):
    SOURCE = ("{%- for m in messages -%}[{{ m.role }}] {{ m['content'] | trim }}\n{% endfor -%}"
              "{%- if tools %}{{ tools | tojson }}\n{% endif -%}"
              "{%- if add_generation_prompt %}[assistant]{% endif -%}")

    def setUp(self):
        super().setUp()
        self.messages = self.write("messages.json", json.dumps(
            [{"role": "system", "content": " be brief "}, {"role": "user", "content": "h\u00e9"}]))
        self.source = self.write("chat.jinja", self.SOURCE)

    @each_model
    def test_own_source(self, model):
        want = "[system] be brief\n[user] h\u00e9\n"
        args = ("template", model, "--messages", self.messages, "--template", self.source)
        self.assertEqual(call(*args).stdout.decode(), want + "[assistant]")
        self.assertEqual(call(*args, "--no-generation-prompt").stdout.decode(), want)
        tools = self.write("tools.json", '[{"name": "f"}]')
        self.assertEqual(call(*args, "--tools", tools).stdout.decode(),
                         want + '[{"name": "f"}]\n[assistant]')

    def test_bad_template_and_json(self):
        model = MODELS[0]
        broken = self.write("broken.jinja", "line one\n{% for x in %}")
        self.assert_error("template", model, "--messages", self.messages, "--template", broken,
                          mentions=["2"])
        self.assert_error("template", model, "--messages", self.write("m.json", "[{"),
                          "--template", self.source)
        self.assert_error("template", model, "--messages", self.folder / "absent.json",
                          mentions=["absent.json"])


class Inspect(Case):
    @each_model
    def test_object(self, model):
        out = call_json("inspect", model)
        self.assertTrue(out["runs"], out.get("reason"))
        self.assertEqual(out["metadata"]["general.architecture"], out["architecture"])
        self.assertEqual(out["file_bytes"], model.stat().st_size)
        for key in ("layers", "hidden", "heads", "kv_heads", "head_dim", "ffn", "vocabulary",
                    "context_length"):
            self.assertGreater(out[key], 0, key)
        names = [t["name"] for t in out["tensors"]]
        self.assertIn("token_embd.weight", names)
        self.assertEqual(len(names), len(set(names)))
        for tensor in out["tensors"]:
            self.assertGreater(tensor["bytes"], 0)
            self.assertGreater(math.prod(tensor["shape"]), 0)

    @each_model
    def test_text_and_long_arrays(self, model):
        text = call("inspect", model).stdout.decode()
        self.assertIn("token_embd.weight", text)
        short = call_json("inspect", model)["metadata"]["tokenizer.ggml.tokens"]
        whole = call_json("inspect", model, "--all")["metadata"]["tokenizer.ggml.tokens"]
        self.assertEqual(short["count"], len(whole))
        self.assertEqual(short["first"], whole[:len(short["first"])])


class Measure(Case):
    def setUp(self):
        super().setUp()
        self.text = self.write("text.txt", "the cat sat on the mat and the dog ran off. " * 40)

    @each_model
    def test_perplexity(self, model):
        args = ("perplexity", model, "-f", self.text, "-c", 32, "-t", 1)
        out = call_json(*args)
        ids = call_json("tokenize", model, "--no-parse-special",
                        stdin=self.text.read_bytes())["count"]
        self.assertEqual((out["ids"], out["windows"]), (ids, ids // 32))
        self.assertEqual(out["scored"], out["windows"] * 15)
        self.assertEqual(len(out["per_window"]), out["windows"])
        mean = sum(map(math.log, out["per_window"])) / out["windows"]
        self.assertAlmostEqual(math.exp(mean) / out["perplexity"], 1, places=5)
        reference = call_json(*args, "--reference")
        self.assertEqual(reference["path"], "reference")
        self.assertAlmostEqual(reference["perplexity"] / out["perplexity"], 1, delta=0.1)
        self.assertEqual(out["kv_type"], "f16")
        for kv_type in ("q8_0", "bf16"):
            other = call_json(*args, "--kv-type", kv_type)
            self.assertEqual(other["kv_type"], kv_type)
            self.assertNotEqual(other["perplexity"], out["perplexity"])
            self.assertAlmostEqual(other["perplexity"] / out["perplexity"], 1, delta=0.1)
        self.assertRegex(call(*args).stdout.decode(), r"^perplexity \d+\.\d+ ")

    def rows_of(self, path, vocabulary):
        """The logits that --kl-base has written, behind the header."""
        values = struct.unpack(f"<{(path.stat().st_size - 48) // 4}f", path.read_bytes()[48:])
        return [values[i:i + vocabulary] for i in range(0, len(values), vocabulary)]

    @each_model
    def test_divergence_from_an_earlier_run(self, model):
        vocabulary = call_json("inspect", model)["vocabulary"]
        args = ("perplexity", model, "-f", self.text, "-c", 32, "-t", 1)
        base, here = self.folder / "base", self.folder / "here"
        plain = call_json(*args)
        written = call_json(*args, "--kl-base", base, "--step", 1)
        self.assertAlmostEqual(written["perplexity"] / plain["perplexity"], 1, places=3)
        self.assertNotIn("kl", written)
        out = call_json(*args, "--kl", base, "--kl-base", here, "--kv-type", "q8_0")

        def log_softmax(row):
            normaliser = math.log(math.fsum(math.exp(x) for x in row))
            return [x - normaliser for x in row]

        pairs = [(log_softmax(p), log_softmax(q)) for p, q in zip(
            self.rows_of(base, vocabulary), self.rows_of(here, vocabulary), strict=True)]
        self.assertEqual(len(pairs), out["scored"])
        divergences = sorted(math.fsum(math.exp(p) * (p - q) for p, q in zip(*pair))
                             for pair in pairs)
        kl = out["kl"]
        self.assertAlmostEqual(kl["mean"], math.fsum(divergences) / len(pairs), places=8)
        self.assertAlmostEqual(kl["median"], statistics.median(divergences), places=8)
        self.assertAlmostEqual(kl["max"], divergences[-1], places=8)
        self.assertAlmostEqual(
            kl["p999"], divergences[math.ceil(0.999 * len(pairs)) - 1], places=8)
        self.assertEqual(kl["same_top"], sum(p.index(max(p)) == q.index(max(q))
                                             for p, q in pairs) / len(pairs))
        self.assertGreater(kl["mean"], 0)
        self.assertAlmostEqual(kl["perplexity_base"] / written["perplexity"], 1, places=5)
        self.assertAlmostEqual(kl["perplexity_base"] * kl["perplexity_ratio"] / out["perplexity"],
                               1, places=5)
        # The same run again, to the bit.
        again = call_json(*args, "--kl", base, "--step", 1)["kl"]
        self.assertEqual((again["max"], again["same_top"], again["rms_dp"]), (0, 1, 0))
        self.assertRegex(call(*args, "--kl", base).stdout.decode(),
                         r"(?m)^KL divergence mean \d\.\d+ \+- .*\n.*perplexity x (1\.0|0\.9)")

        self.assert_error("perplexity", model, "-f", self.text, "-c", 16, "--kl", base,
                          mentions=["of 32 ids", "of 16 ids"])
        header = base.read_bytes()[:48]
        short = self.write("short", base.read_bytes()[:-2])
        self.assert_error(*args, "--kl", short, mentions=["ends early"])
        self.assert_error(*args, "--kl", self.text, mentions=["not written by"])
        self.assert_error(*args, "--kl", self.folder / "none", mentions=["cannot be read"])
        self.assert_error(*args, "--kl-base", self.folder, mentions=["cannot be written"])
        changed = self.write("changed", header[:40] + bytes(8) + base.read_bytes()[48:])
        self.assert_error(*args, "--kl", changed, mentions=["another text"])

    @each_model
    def test_bench(self, model):
        keys = {"prefill_tokens_per_s", "decode_tokens_per_s", "ttft_ms", "load_ms",
                "load_to_first_token_ms", "bytes_per_token", "decode_gb_per_s"}
        for depth in (0, 24):
            args = ("bench", model, "-p", 16, "-n", 8, "-r", 2, "-t", 1, "--depth", depth,
                    "--no-roofs")
            out = call_json(*args)
            for key in keys:
                self.assertGreater(out[key], 0, key)
            for samples in out["samples"].values():
                self.assertEqual(len(samples), 2)
            self.assertIsNone(out["read_roof_gb_per_s"])
            self.assertEqual((out["depth"], out["threads"]), (depth, 1))
            self.assertIn("tokens/s", call(*args).stdout.decode())

    def test_bench_of_sessions(self):
        out = call_json("bench", MODELS[0], "--sessions", "1,3", "--shared-prefix", 32, "-p", 4,
                        "-n", 6, "-t", 1, "--arriving-prompt", 40)
        self.assertEqual([row["sessions"] for row in out["results"]], [1, 3])
        for row in out["results"]:
            self.assertEqual(row["output_tokens"], 7 * row["sessions"])
            self.assertGreaterEqual(row["total_decode_tokens_per_s"], 0)
            self.assertGreater(row["kv_pages_held"], 0)
            self.assertGreater(row["arrival_ttft_ms"], 0)
            self.assertGreater(row["idle_ttft_ms"], 0)
            self.assertEqual(row["prompt_tokens"], 36 * row["sessions"])
            self.assertGreater(row["ttft_ms_p50"], 0)
            self.assertGreaterEqual(row["inter_token_ms_p99"], row["inter_token_ms_p50"])

    def test_bench_of_traces(self):
        own = self.write("own.csv", "arrival_s,session,prompt_tokens,output_tokens\n0,1,9,3\n"
                         "0.01,2,5,4\n0.02,1,3,6\n")
        row = call_json("bench", MODELS[0], "--trace", own, "-t", 1)["results"][0]
        self.assertEqual((row["requests"], row["sessions"]), (3, 2))
        self.assertEqual(row["output_tokens"], 13)
        # 0 when a busy machine shows all tokens to the poll loop at once.
        self.assertGreaterEqual(row["total_decode_tokens_per_s"], 0)
        self.assertLessEqual(row["hit_rate"], 1)
        header = (ROOT / "bench/traces/chat.csv").read_text().splitlines()[0]
        self.assertEqual(header, own.read_text().splitlines()[0])
        azure = self.write("azure.csv", "TIMESTAMP,ContextTokens,GeneratedTokens\n"
                           "2023-11-16 18:15:46.6805900,12,4\n2023-11-16 18:15:46.70,3,2\n")
        burst = self.write("burst.csv", "Timestamp,Model,Request tokens,Response tokens,Total "
                           "tokens,Log Type\n5,ChatGPT,7,3,10,API\n5.1,GPT-4,2,4,6,API\n")
        for trace in (azure, burst):
            row = call_json("bench", MODELS[0], "--trace", trace, "-t", 1)["results"][0]
            self.assertEqual((row["requests"], row["sessions"]), (2, 2))
        bad = self.write("bad.csv", "a,b\n1,2\n")
        self.assert_error("bench", MODELS[0], "--trace", bad, mentions=["columns"])
        bad = self.write("bad2.csv", "arrival_s,prompt_tokens,output_tokens\n0,x,1\n")
        self.assert_error("bench", MODELS[0], "--trace", bad, mentions=["line 2"])
        self.assert_error("bench", MODELS[0], "--sessions", 0, status=2, mentions=["--sessions"])

    def test_probe(self):
        out = call_json("probe", "-t", 1, "--read-bytes", 1 << 20)
        for key in ("read_roof_gb_per_s", "dram_read_gb_per_s", "int8_roof_tmac_per_s"):
            self.assertGreater(out[key], 0, key)


class Errors(Case):
    def test_options(self):
        model = MODELS[0]
        self.assert_error(status=2)
        self.assert_error("nonsense", status=2)
        self.assert_error("run", status=2)
        self.assert_error("run", model, "--nonsense", status=2)
        self.assert_error("run", model, "-p", "a", "-n", "-1", status=2)
        self.assert_error("run", model, "-p", "a", "--temp", "hot", status=2)
        self.assert_error("run", model, "-p", "a", "-t", "-2", status=2)
        self.assert_error("perplexity", model, status=2)
        self.assert_error("perplexity", model, "-f", model, "-c", "1", status=2)
        self.assert_error("bench", model, "-n", "0", status=2)
        self.assertIn("Usage", call("--help").stdout.decode())

    def test_files(self):
        whole = MODELS[0].read_bytes()
        cases = {"empty": b"", "text": b"this is no model" * 10, "magic": b"GGUF",
                 "half": whole[:len(whole) // 2], "cut": whole[:-64], "head": whole[:100]}
        for name, content in cases.items():
            with self.subTest(name):
                path = self.write(f"{name}.gguf", content)
                for command in (("run", path, "-p", "a"), ("inspect", path),
                                ("tokenize", path, "-p", "a"), ("bench", path, "--no-roofs")):
                    if name in ("half", "cut") and command[0] in ("inspect", "tokenize"):
                        continue  # What they need may be whole.
                    self.assert_error(*command)
        self.assert_error("run", self.folder / "absent.gguf", "-p", "a", mentions=["absent.gguf"])
        self.assert_error("run", self.folder, "-p", "a")

    @each_model
    def test_prompt_longer_than_the_context(self, model):
        prompt = "cat " * 200
        count = call_json("tokenize", model, "-p", prompt)["count"]
        self.assert_error("run", model, "-p", prompt, "-c", CONTEXT,
                          mentions=["CONTEXT_FULL", CONTEXT, count])

    def test_too_little_text(self):
        text = self.write("short.txt", "cat")
        self.assert_error("perplexity", MODELS[0], "-f", text, "-c", 512, mentions=["512"])
        self.assert_error("perplexity", MODELS[0], "-f", self.folder / "absent.txt",
                          mentions=["absent.txt"])

    def test_ids(self):
        model = MODELS[0]
        self.assert_error("detokenize", model, stdin=b"1 two 3", mentions=["two"])
        self.assert_error("detokenize", model, stdin=b"99999999", mentions=["99999999"])
        self.assert_error("detokenize", model, stdin=b"-1")
        self.assert_error("detokenize", model, stdin=b"99999999999999999999")


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], GROUP.capitalize(), "-v"])
