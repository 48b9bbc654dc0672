using System;
using System.Diagnostics;
using System.Globalization;
using System.Linq;
using System.Threading;
using SitsOptima.Raw;

namespace SitsOptima.Tests
{
    internal static class GenerateTests
    {
        public static void TokensAreThoseOfTransformers()
        {
            foreach (string name in new[] { "llama-q8_0", "gemma3-f32" })
            {
                using (var host = new Host(name))
                {
                    Result result = host.Session.Generate(host.Request());
                    Check.Same(host.Golden.PromptIds, result.PromptIds, name + " prompt");
                    Check.Same(host.Golden.ContinuationIds, result.TokenIds, name + " output");
                    Check.Equal(Finish.Length, result.Finish, "finish");
                    Check.Equal(-1, result.StopIndex, "stop");
                    Check.Equal((long)result.TokenIds.Length, result.Counters.OutputTokens,
                                "counted tokens");
                    Check.Same(host.Model.DetokenizeBytes(result.TokenIds), result.Bytes, "bytes");
                }
            }
        }

        public static void IdsAsPrompt()
        {
            using (var host = new Host())
            {
                RequestOptions request = host.Request();
                request.Prompt = null;
                request.PromptIds = host.Golden.PromptIds;
                Check.Same(host.Golden.ContinuationIds, host.Session.Generate(request).TokenIds,
                           "output");
            }
        }

        public static void TextAndTokens()
        {
            using (var host = new Host())
            {
                Check.Same(host.Golden.PromptIds, host.Model.Tokenize(host.Golden.Prompt), "ids");
                Check.Equal(host.Golden.Prompt, host.Model.Detokenize(host.Golden.PromptIds),
                            "text");
                Check.Same(new int[0], host.Model.Tokenize(""), "the empty text");
                Check.Equal("llama", host.Model.Architecture, "architecture");
                Check.Equal("tiny llama-q8_0", host.Model.Name, "name");
                Check.Equal(297, host.Model.Info.Vocabulary, "vocabulary");
                Check.Equal(256, host.Model.Info.ContextLength, "context");
            }
        }

        public static void Metadata()
        {
            using (var host = new Host())
            {
                Model model = host.Model;
                Check.Equal<object>("llama", model.GetMetadata("general.architecture"), "string");
                Check.Equal<object>(256L, model.GetMetadata("llama.context_length"), "integer");
                Check.Equal<object>(false, model.GetMetadata("tokenizer.ggml.add_bos_token"),
                                    "boolean");
                var epsilon = (double)model.GetMetadata(
                    "llama.attention.layer_norm_rms_epsilon");
                Check.True(Math.Abs(epsilon - 1e-5) < 1e-9, "real " + epsilon);
                var tokens = (object[])model.GetMetadata("tokenizer.ggml.tokens");
                Check.Equal(297, tokens.Length, "array");
                Check.Equal<object>("<|im_start|>", tokens[1], "item");
                Check.Equal<object>(null, model.GetMetadata("no.such.key"), "no key");
                string[] keys = model.GetMetadataKeys();
                Check.Equal("general.architecture", keys[0], "first key");
                Check.Equal((int)model.Info.MetadataCount, keys.Distinct().Count(), "keys");
            }
        }

        public static void Vocabulary()
        {
            using (var host = new Host())
            {
                Model model = host.Model;
                Check.Equal("<|im_end|>", model.GetTokenText(2), "text");
                Check.Equal(2, model.FindToken("<|im_end|>"), "id");
                Check.Equal(TokenKind.Control, model.GetTokenKind(2), "kind");
                Check.True(model.EndsGeneration(2) && !model.EndsGeneration(40), "ends");
                Check.Equal(-1, model.FindToken("no such token"), "none");
                Check.Equal(null, model.GetTokenText(297), "out of range");
            }
        }

        public static void Probe()
        {
            Machine machine = Machine.Probe();
            Check.True(machine.Figures.Threads > 0 && machine.Isa.Length > 0, "CPUs");
            Check.Equal(0.0, machine.Figures.ReadRoofGbPerS, "nothing was measured");
        }

        public static void Logits()
        {
            var session = new SessionOptions { Path = ComputePath.Reference };
            using (var host = new Host("gemma3-f32", session))
            {
                int last = host.Golden.PromptIds.Length - 1;
                RequestOptions request = host.Request();
                request.LogitsPositions = new long[] { 0, last };
                request.Logprobs = 2;
                request.MaxTokens = 1;
                Result result = host.Session.Generate(request);
                Check.Equal(2, result.Logits.Length, "rows");
                float[] expected = host.Golden.Logits(last, 371);
                CheckNear(host.Golden.Logits(0, 371), result.Logits[0], 1e-3f, "first row");
                CheckNear(expected, result.Logits[1], 1e-3f, "last row");
                double sum = expected.Sum(x => Math.Exp(x - (double)expected.Max()));
                int best = Array.IndexOf(expected, expected.Max());
                Check.Equal(best, result.TopLogprobs[0][0].Token, "most probable token");
                Check.True(Math.Abs(result.Logprobs[0] + Math.Log(sum)) < 1e-3,
                           "its log-probability " + result.Logprobs[0]);
                Check.Equal(2, result.TopLogprobs[0].Length, "tokens beside");
            }
        }

        /// <summary>What the hook leaves is what is chosen.</summary>
        public static void LogitsProcessor()
        {
            using (var host = new Host())
            {
                int seen = 0;
                RequestOptions request = host.Request();
                request.MaxTokens = 3;
                request.OnLogits = (logits, tokens) =>
                {
                    Check.Equal(297, logits.Length, "a row");
                    Check.Equal(host.Golden.PromptIds.Length + seen++, tokens.Length, "tokens");
                    for (int i = 0; i < logits.Length; ++i)
                    {
                        if (i != 40 + seen) logits[i] = float.NegativeInfinity;
                    }
                };
                Check.Same(new[] { 41, 42, 43 }, host.Session.Generate(request).TokenIds,
                           "output");
            }
        }

        public static void StopStringAndGrammar()
        {
            using (var host = new Host())
            {
                Result result = host.Session.Generate(new RequestOptions("x")
                {
                    Grammar = "root ::= \"one two three\"",
                    GrammarKind = GrammarKind.Gbnf,
                    Stops = new[] { "four", "two" },
                });
                Check.Equal("one ", result.Text, "text");
                Check.Equal(Finish.StopString, result.Finish, "finish");
                Check.Equal(1, result.StopIndex, "which");
            }
        }

        public static void ChatTemplate()
        {
            using (var host = new Host())
            {
                string odd = "a \"b\" \\ c\n\u0001 \U0001F642 \u4E2D";
                string expected = "<|im_start|>system\nbe brief<|im_end|>\n<|im_start|>user\n" + odd
                                  + "<|im_end|>\n<|im_start|>assistant\n";
                Check.Equal(expected, host.Model.RenderChat(new ChatMessage("system", "be brief"),
                                                            new ChatMessage("user", odd)), "chat");
                string json = host.Model.RenderChat(new ChatOptions
                {
                    MessagesJson = "[{\"role\":\"user\",\"content\":\"hi\"}]",
                    Flags = ChatFlags.NoGenerationPrompt,
                });
                Check.Equal("<|im_start|>user\nhi<|im_end|>\n", json, "chat from JSON");
            }
        }

        /// <summary>As the program optima computes them.</summary>
        public static void Embeddings()
        {
            var options = new SessionOptions { Output = SessionOutput.Embedding };
            using (var host = new Host("llama-q8_0", options))
            {
                string[] texts = { "one text", "another, longer text" };
                float[][] expected = texts.Select(text => FromProgram(host.Golden.Path, text))
                    .ToArray();
                Check.Equal(64, expected[0].Length, "width");
                Result one = host.Session.Embed(new RequestOptions(texts[0]));
                Check.Equal(Finish.Embedded, one.Finish, "finish");
                CheckNear(expected[0], one.Embedding, 0.1f, "one");
                float[][] both = host.Session.EmbedTexts(texts);
                for (int i = 0; i < 2; ++i) CheckNear(expected[i], both[i], 0.1f, "text " + i);
                Check.True(Math.Abs(both[0][0] - both[1][0]) > 0.2, "the texts differ");
            }
        }

        private static float[] FromProgram(string model, string text)
        {
            string program = Environment.GetEnvironmentVariable("OPTIMA_TEST_PROGRAM");
            Check.True(program != null, "OPTIMA_TEST_PROGRAM names the program optima");
            var start = new ProcessStartInfo(program, "embed \"" + model + "\" \"" + text + "\"")
            {
                UseShellExecute = false,
                RedirectStandardOutput = true,
            };
            using (Process process = Process.Start(start))
            {
                string output = process.StandardOutput.ReadToEnd();
                process.WaitForExit();
                Check.Equal(0, process.ExitCode, "the program");
                return output.Trim().Split(' ')
                    .Select(x => float.Parse(x, CultureInfo.InvariantCulture)).ToArray();
            }
        }

        /// <summary>The same on an engine with a thread pool of its own beside it.</summary>
        public static void TwoEnginesAtOnce()
        {
            using (var one = new Host("llama-q8_0"))
            using (var two = new Host("gemma3-f32"))
            {
                Exception failed = null;
                var threads = new[] { one, two }.Select(host => new Thread(() =>
                {
                    try
                    {
                        for (int i = 0; i < 10; ++i)
                        {
                            host.Session.Reset();
                            host.CheckUsable("round " + i);
                        }
                    }
                    catch (Exception caught)
                    {
                        Volatile.Write(ref failed, caught);
                    }
                })).ToArray();
                foreach (Thread thread in threads) thread.Start();
                foreach (Thread thread in threads) thread.Join();
                if (failed != null) throw failed;
            }
        }

        public static void CheckNear(float[] expected, float[] actual, float tolerance, string what)
        {
            Check.Equal(expected.Length, actual.Length, what);
            for (int i = 0; i < expected.Length; ++i)
            {
                Check.True(Math.Abs(expected[i] - actual[i]) <= tolerance,
                           what + " at " + i + ": " + expected[i] + ", " + actual[i]);
            }
        }
    }
}
