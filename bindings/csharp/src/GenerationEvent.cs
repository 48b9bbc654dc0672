using System;
using SitsOptima.Raw;

namespace SitsOptima
{
    /// <summary>Something that happened to a request. A copy: it may be kept.</summary>
    public sealed class GenerationEvent
    {
        private static readonly byte[] NoBytes = new byte[0];
        private static readonly OptimaTokenLogprob[] NoTop = new OptimaTokenLogprob[0];

        private GenerationEvent()
        {
        }

        /// <summary>What it tells.</summary>
        public EventType Type { get; private set; }

        /// <summary>Text that became complete: whole code points, may be empty.</summary>
        public string Text { get; private set; }

        /// <summary>Exactly the token's bytes, which may be an incomplete code point.</summary>
        public byte[] Bytes { get; private set; }

        /// <summary>Token id, -1 for other types.</summary>
        public int Token { get; private set; }

        /// <summary>Natural logarithm of the token's probability.</summary>
        public float Logprob { get; private set; }

        /// <summary>Most probable tokens, best first; as many as Logprobs asked.</summary>
        public OptimaTokenLogprob[] Top { get; private set; }

        /// <summary>Output index of the token.</summary>
        public long Index { get; private set; }

        /// <summary>Prompt tokens processed.</summary>
        public long TokensDone { get; private set; }

        /// <summary>Prompt tokens in all.</summary>
        public long TokensTotal { get; private set; }

        /// <summary>Why it ended (EventType.Done).</summary>
        public Finish Finish { get; private set; }

        /// <summary>Status of a request that failed (EventType.Done).</summary>
        public Status Status { get; private set; }

        /// <summary>
        /// What the request produced: with the last event of a stream that did not fail.
        /// </summary>
        public Result Result { get; internal set; }

        internal static unsafe GenerationEvent From(OptimaEvent* native)
        {
            return new GenerationEvent
            {
                Type = native->Type,
                Text = Utf8.Read(native->Text, native->TextBytes),
                Bytes = native->BytesCount == 0
                    ? NoBytes : Copy.Bytes(native->Bytes, native->BytesCount),
                Token = native->Token,
                Logprob = native->Logprob,
                Top = native->TopCount == 0 ? NoTop : Copy.Logprobs(native->Top, native->TopCount),
                Index = native->Index,
                TokensDone = native->TokensDone,
                TokensTotal = native->TokensTotal,
                Finish = native->Finish,
                Status = native->Status,
            };
        }
    }
}
