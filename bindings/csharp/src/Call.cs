// One generation or embedding on its way into the library and back: the options as the C struct,
// the callbacks' object, and what is pinned until it is done.
using System;
using System.Runtime.InteropServices;
using System.Threading;
using SitsOptima.Raw;

namespace SitsOptima
{
    /// <summary>
    /// Changes the logits of an output token in place; tokens are prompt and output so far.
    /// NegativeInfinity bans a token. It must not call into the engine.
    /// </summary>
    public delegate void LogitsProcessor(float[] logits, int[] tokens);

    /// <summary>Where the events of a blocking call go.</summary>
    public delegate Verdict EventCallback(GenerationEvent generationEvent);

    public sealed partial class RequestOptions
    {
        /// <summary>The defaults; a prompt must be given.</summary>
        public RequestOptions()
        {
        }

        /// <summary>A text prompt.</summary>
        public RequestOptions(string prompt)
        {
            Prompt = prompt;
        }

        /// <summary>Time from the call after which the request ends. null = none.</summary>
        public TimeSpan? Deadline { get; set; }

        /// <summary>
        /// Changes logits before any token is dropped, on the thread that drives the engine.
        /// </summary>
        public LogitsProcessor OnLogits { get; set; }

        /// <summary>Whole milliseconds, at least 1: 0 is no deadline in the C API.</summary>
        internal static long Milliseconds(TimeSpan time)
        {
            return Math.Max(1, (long)Math.Ceiling(time.TotalMilliseconds));
        }
    }

    internal class Call : CallbackOwner
    {
        public readonly RequestOptions Options;
        public readonly EventCallback OnEvent;
        public readonly CancellationToken Token;
        private float[] logits = new float[0];
        private float[] row;
        private GCHandle pin;
        private int rows;

        public Call(RequestOptions options, EventCallback onEvent, CancellationToken token)
        {
            if (options == null) throw new ArgumentNullException("options");
            Options = options;
            OnEvent = onEvent;
            Token = token;
        }

        /// <summary>
        /// The C struct. Its user is a cookie for this object, which the library releases: to be
        /// passed to exactly one call.
        /// </summary>
        public OptimaRequestDesc Describe(Arena arena, int vocabulary)
        {
            OptimaRequestDesc desc = OptimaRequestDesc.Create();
            Options.Fill(ref desc, arena);
            if (Options.Deadline.HasValue)
            {
                desc.DeadlineMs = RequestOptions.Milliseconds(Options.Deadline.Value);
            }
            if (OnEvent != null) desc.OnEvent = Callbacks.OnEventPointer;
            if (Options.OnLogits != null) desc.OnLogits = Callbacks.OnLogitsPointer;
            if (Options.LogitsPositions != null)
            {
                rows = Options.LogitsPositions.Count;
                logits = new float[rows * (long)vocabulary];
                pin = GCHandle.Alloc(logits, GCHandleType.Pinned);
                desc.LogitsOut = pin.AddrOfPinnedObject();
                desc.LogitsCapacity = (UIntPtr)logits.LongLength;
            }
            desc.User = Cookie.Make(this);
            desc.Release = Callbacks.ReleasePointer;
            return desc;
        }

        public void ChangeLogits(IntPtr native, long vocabulary, int[] tokens)
        {
            if (row == null) row = new float[vocabulary];
            Marshal.Copy(native, row, 0, row.Length);
            Options.OnLogits(row, tokens);
            Marshal.Copy(row, 0, native, row.Length);
        }

        /// <summary>The logits that were asked for, one row a position.</summary>
        public float[][] TakeLogits()
        {
            var all = new float[rows][];
            for (int i = 0; i < rows; ++i)
            {
                all[i] = new float[logits.Length / rows];
                Array.Copy(logits, i * all[i].Length, all[i], 0, all[i].Length);
            }
            return all;
        }

        public override void Released()
        {
            if (pin.IsAllocated) pin.Free();
        }

        /// <summary>The end of a request as .NET tells it; see Receive and Judge.</summary>
        public Result End(Status status, IntPtr result, IntPtr error)
        {
            return Judge(Receive(status, result, error));
        }

        /// <summary>
        /// The result; what a callback threw, or else the library's error, as an exception.
        /// </summary>
        public Result Receive(Status status, IntPtr result, IntPtr error)
        {
            if (status != Status.Ok) Throw(status, error);
            Result taken = Result.Take(result, this);
            Rethrow();
            return taken;
        }

        /// <summary>Throws for a status that is not Ok.</summary>
        public void Throw(Status status, IntPtr error)
        {
            OptimaException failed = OptimaException.Take(status, error);
            Rethrow();
            if (status == Status.Cancelled) Token.ThrowIfCancellationRequested();
            throw failed;
        }

        /// <summary>A cancelled token and a late request as exceptions.</summary>
        public Result Judge(Result result)
        {
            if (result.Finish == Finish.Cancelled && Token.IsCancellationRequested)
            {
                throw new GenerationCanceledException(result, Token);
            }
            if (result.Finish == Finish.Deadline && Options.Deadline.HasValue)
            {
                throw DeadlineException.Of(result, Options.Deadline.Value);
            }
            return result;
        }
    }
}
