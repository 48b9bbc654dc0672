using System;
using SitsOptima.Raw;

namespace SitsOptima
{
    /// <summary>What a finished request produced. A copy: nothing to dispose.</summary>
    public sealed class Result
    {
        private Result()
        {
        }

        /// <summary>Why it ended.</summary>
        public Finish Finish { get; private set; }

        /// <summary>Which of Stops ended it, -1 = none.</summary>
        public int StopIndex { get; private set; }

        /// <summary>The output's text: whole code points, without the stop string.</summary>
        public string Text { get; private set; }

        /// <summary>The bytes of the output's tokens, as they are.</summary>
        public byte[] Bytes { get; private set; }

        /// <summary>The prompt's token ids.</summary>
        public int[] PromptIds { get; private set; }

        /// <summary>The output's token ids.</summary>
        public int[] TokenIds { get; private set; }

        /// <summary>Log-probability of each output token.</summary>
        public float[] Logprobs { get; private set; }

        /// <summary>
        /// For each output token the most probable ones, best first; empty unless Logprobs of the
        /// request asked.
        /// </summary>
        public OptimaTokenLogprob[][] TopLogprobs { get; private set; }

        /// <summary>
        /// Log-probability of each prompt token from position max(PromptLogprobsFrom, 1) on, where
        /// RequestFlags.PromptLogprobs asked.
        /// </summary>
        public float[] PromptLogprobs { get; private set; }

        /// <summary>
        /// For each of LogitsPositions the vocabulary's logits; empty where none were asked.
        /// </summary>
        public float[][] Logits { get; private set; }

        /// <summary>The embedding; empty when it is none.</summary>
        public float[] Embedding { get; private set; }

        /// <summary>What it cost.</summary>
        public OptimaCounters Counters { get; private set; }

        /// <summary>Copies a result of the library and destroys it.</summary>
        internal static Result Take(IntPtr pointer, Call call)
        {
            using (var handle = new OptimaResultHandle())
            {
                handle.Adopt(pointer);
                Api api = OptimaLibrary.Api;
                long count;
                IntPtr at = api.ResultText(pointer, out count);
                var result = new Result
                {
                    Finish = api.ResultFinish(pointer),
                    StopIndex = api.ResultStopIndex(pointer),
                    Text = Utf8.Read(at, count),
                };
                at = api.ResultBytes(pointer, out count);
                result.Bytes = Copy.Bytes(at, count);
                at = api.ResultPromptIds(pointer, out count);
                result.PromptIds = Copy.Ints(at, count);
                at = api.ResultTokenIds(pointer, out count);
                result.TokenIds = Copy.Ints(at, count);
                at = api.ResultLogprobs(pointer, out count);
                result.Logprobs = Copy.Floats(at, count);
                at = api.ResultPromptLogprobs(pointer, out count);
                result.PromptLogprobs = Copy.Floats(at, count);
                at = api.ResultEmbedding(pointer, out count);
                result.Embedding = Copy.Floats(at, count);
                result.TopLogprobs = ReadTop(api, pointer, result.TokenIds.Length);
                result.Counters = ReadCounters(api, pointer);
                result.Logits = call.TakeLogits();
                return result;
            }
        }

        private static OptimaTokenLogprob[][] ReadTop(Api api, IntPtr pointer, int tokens)
        {
            long count;
            if (api.ResultTopLogprobs(pointer, 0, out count) == IntPtr.Zero)
            {
                return new OptimaTokenLogprob[0][];
            }
            var top = new OptimaTokenLogprob[tokens][];
            for (int i = 0; i < tokens; ++i)
            {
                IntPtr at = api.ResultTopLogprobs(pointer, i, out count);
                top[i] = Copy.Logprobs(at, count);
            }
            return top;
        }

        private static OptimaCounters ReadCounters(Api api, IntPtr pointer)
        {
            OptimaCounters counters = OptimaCounters.Create();
            IntPtr error;
            Status status = api.ResultCounters(pointer, ref counters, out error);
            OptimaException.Check(status, error);
            return counters;
        }
    }
}
