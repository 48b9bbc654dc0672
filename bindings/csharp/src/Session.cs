using System;
using System.Collections.Generic;
using System.IO;
using System.Threading;
using System.Threading.Tasks;
using SitsOptima.Raw;

namespace SitsOptima
{
    public sealed partial class SessionOptions
    {
        /// <summary>
        /// A smaller model of the same engine and vocabulary, which makes the guesses of requests
        /// with DraftTokens; the session keeps it alive.
        /// </summary>
        public Model DraftModel { get; set; }
    }

    /// <summary>SessionOptions as the C struct, and the draft model kept for the call.</summary>
    internal sealed class SessionDesc : IDisposable
    {
        public OptimaSessionOptions Native = OptimaSessionOptions.Create();
        private HandleUse draft;

        public SessionDesc(SessionOptions options)
        {
            if (options == null) return;
            options.Fill(ref Native, null);
            if (options.DraftModel == null) return;
            draft = options.DraftModel.Handle.Use();
            Native.DraftModel = draft.Pointer;
        }

        public void Dispose()
        {
            draft.Dispose();
        }
    }

    /// <summary>
    /// One conversation: a sequence of tokens and their KV. It runs one request at a time; another
    /// one meanwhile is refused with BusyException.
    /// </summary>
    public sealed class Session : IDisposable
    {
        private readonly OptimaSessionHandle handle = new OptimaSessionHandle();
        private readonly List<OptimaCancelHandle> running = new List<OptimaCancelHandle>();

        internal Session(Model model, IntPtr pointer)
        {
            Model = model;
            handle.Adopt(pointer);
        }

        /// <summary>The model that it talks to.</summary>
        public Model Model { get; private set; }

        /// <summary>Most tokens it holds.</summary>
        public long ContextTokens
        {
            get
            {
                using (HandleUse use = handle.Use())
                {
                    return OptimaLibrary.Api.SessionContextTokens(use.Pointer);
                }
            }
        }

        /// <summary>Length of what Save would write now.</summary>
        public long SaveBytes
        {
            get
            {
                using (HandleUse use = handle.Use())
                {
                    return OptimaLibrary.Api.SessionSaveBytes(use.Pointer);
                }
            }
        }

        /// <summary>The handle, for SitsOptima.Raw.</summary>
        public OptimaSessionHandle Handle
        {
            get { return handle; }
        }

        // ---- Generation

        /// <summary>Runs one text prompt and returns when it is done.</summary>
        public Result Generate(string prompt, long maxTokens = 0)
        {
            return Generate(new RequestOptions(prompt) { MaxTokens = maxTokens });
        }

        /// <summary>
        /// Runs one request and returns when it is done; onEvent is called on this thread. What it
        /// throws comes out here, and the session is then as it was before.
        /// </summary>
        /// <exception cref="GenerationCanceledException">The token ended it.</exception>
        /// <exception cref="DeadlineException">Its deadline passed.</exception>
        /// <exception cref="ContextFullException">The prompt does not fit.</exception>
        /// <exception cref="BusyException">The session runs another request.</exception>
        public Result Generate(RequestOptions options, EventCallback onEvent = null,
                               CancellationToken token = default(CancellationToken))
        {
            return Run(new Call(options, onEvent, token), OptimaLibrary.Api.Generate.Invoke);
        }

        /// <summary>
        /// The events of one request, which begins when they are enumerated and is cancelled when
        /// that ends early. Uses the enumerating thread alone. The last event has the result.
        /// </summary>
        public IEnumerable<GenerationEvent> Stream(
            RequestOptions options, CancellationToken token = default(CancellationToken))
        {
            if (options == null) throw new ArgumentNullException("options");
            return Enumerate(options, token);
        }

        /// <summary>The events of one request, which begins now, to be awaited.</summary>
        public EventStream StreamAsync(RequestOptions options,
                                       CancellationToken token = default(CancellationToken))
        {
            var call = new PendingCall(options, token, Delivery.Awaiter);
            token.ThrowIfCancellationRequested();
            Model.Engine.Hub.Submit(call, this);
            return new EventStream(Model.Engine.Hub, call);
        }

        /// <summary>Runs one request without blocking a thread.</summary>
        public async Task<Result> GenerateAsync(
            RequestOptions options, CancellationToken token = default(CancellationToken))
        {
            using (EventStream stream = StreamAsync(options, token))
            {
                while (await stream.MoveNextAsync().ConfigureAwait(false))
                {
                    // Only the result is wanted.
                }
                return stream.Result;
            }
        }

        /// <summary>
        /// Queues one request and returns. Its events are raised by Engine.Poll; a handler given
        /// here misses none. To be disposed.
        /// </summary>
        public Request Submit(RequestOptions options,
                              EventHandler<GenerationEvent> received = null,
                              CancellationToken token = default(CancellationToken))
        {
            var call = new PendingCall(options, token, Delivery.Handlers);
            token.ThrowIfCancellationRequested();
            Model.Engine.Hub.Submit(call, this, received);
            return call.Request;
        }

        /// <summary>The embedding of a prompt; the session's Output must be Embedding.</summary>
        public Result Embed(RequestOptions options,
                            CancellationToken token = default(CancellationToken))
        {
            return Run(new Call(options, null, token), OptimaLibrary.Api.Embed.Invoke);
        }

        /// <summary>
        /// Embeds several texts, as many in one pass as fit; all or nothing. The options say how;
        /// they have no prompt.
        /// </summary>
        public float[][] EmbedTexts(IReadOnlyList<string> texts, RequestOptions options = null,
                                    CancellationToken token = default(CancellationToken))
        {
            if (texts == null) throw new ArgumentNullException("texts");
            foreach (string text in texts)
            {
                if (text == null) throw new ArgumentException("one of them is null", "texts");
            }
            float[] all = null;
            var call = new Call(options ?? new RequestOptions(), null, token);
            Blocking(call, (IntPtr session, ref OptimaRequestDesc desc, Arena arena) =>
            {
                IntPtr lengths, buffer, error;
                UIntPtr count;
                IntPtr at = arena.Texts(texts, out lengths, out count);
                Status status = OptimaLibrary.Api.EmbedTexts(session, ref desc, at, lengths, count,
                                                             out buffer, out error);
                if (status == Status.Ok) all = Model.TakeFloats(buffer);
                else call.Throw(status, error);
            });
            var rows = new float[texts.Count][];
            for (int i = 0; i < rows.Length; ++i)
            {
                rows[i] = new float[all.Length / rows.Length];
                Array.Copy(all, i * rows[i].Length, rows[i], 0, rows[i].Length);
            }
            return rows;
        }

        // ---- Tokens

        /// <summary>The tokens it holds, as of the last finished step.</summary>
        public int[] GetTokens()
        {
            IntPtr buffer, error;
            using (HandleUse use = handle.Use())
            {
                OptimaException.Check(
                    OptimaLibrary.Api.SessionTokens(use.Pointer, out buffer, out error), error);
            }
            return Model.TakeIds(buffer);
        }

        /// <summary>Forgets all tokens.</summary>
        public void Reset()
        {
            IntPtr error;
            using (HandleUse use = handle.Use())
            {
                OptimaException.Check(
                    OptimaLibrary.Api.SessionReset(use.Pointer, out error), error);
            }
        }

        /// <summary>Keeps the first tokens, or all when it holds fewer.</summary>
        public void Truncate(long tokens)
        {
            IntPtr error;
            using (HandleUse use = handle.Use())
            {
                OptimaException.Check(
                    OptimaLibrary.Api.SessionTruncate(use.Pointer, tokens, out error), error);
            }
        }

        /// <summary>
        /// Another session that holds the same tokens; their memory is shared until one of the two
        /// writes on.
        /// </summary>
        public Session Fork()
        {
            IntPtr pointer, error;
            using (HandleUse use = handle.Use())
            {
                OptimaException.Check(
                    OptimaLibrary.Api.SessionFork(use.Pointer, out pointer, out error), error);
            }
            return new Session(Model, pointer);
        }

        /// <summary>Writes tokens and KV for Model.RestoreSession, with checksums.</summary>
        public void Save(Stream stream)
        {
            if (stream == null) throw new ArgumentNullException("stream");
            IntPtr error;
            var writer = new StreamOwner(stream);
            IntPtr user = Cookie.Make(writer);
            try
            {
                using (HandleUse use = handle.Use())
                {
                    Status status = OptimaLibrary.Api.SessionSave(
                        use.Pointer, Callbacks.WritePointer, user, out error);
                    if (status == Status.Ok) return;
                    OptimaException failed = OptimaException.Take(status, error);
                    writer.Rethrow();
                    throw failed;
                }
            }
            finally
            {
                Cookie.Free(user);
            }
        }

        /// <summary>The same into a file, which is there whole or not at all.</summary>
        public void Save(string path)
        {
            if (path == null) throw new ArgumentNullException("path");
            IntPtr error;
            using (var arena = new Arena())
            using (HandleUse use = handle.Use())
            {
                UIntPtr bytes;
                IntPtr at = arena.Text(path, out bytes);
                OptimaException.Check(
                    OptimaLibrary.Api.SessionSavePath(use.Pointer, at, bytes, out error), error);
            }
        }

        /// <summary>What it holds of KV, as of now.</summary>
        public OptimaSessionKv QueryKv()
        {
            OptimaSessionKv kv = OptimaSessionKv.Create();
            IntPtr error;
            using (HandleUse use = handle.Use())
            {
                OptimaException.Check(
                    OptimaLibrary.Api.SessionKvQuery(use.Pointer, ref kv, out error), error);
            }
            return kv;
        }

        /// <summary>Cancels what runs in it, and lets go of it.</summary>
        public void Dispose()
        {
            lock (running)
            {
                foreach (OptimaCancelHandle latch in running) Trigger(latch);
            }
            handle.Dispose();
        }

        // ---- The calls behind

        private delegate Status RunFunction(IntPtr session, ref OptimaRequestDesc desc,
                                            out IntPtr result, out IntPtr error);

        private delegate void Body(IntPtr session, ref OptimaRequestDesc desc, Arena arena);

        internal void Submit(PendingCall call, OptimaRequestHandle request)
        {
            IntPtr pointer, error;
            using (var arena = new Arena())
            using (HandleUse use = handle.Use())
            {
                OptimaRequestDesc desc = call.Describe(arena, Model.Info.Vocabulary);
                OptimaException.Check(
                    OptimaLibrary.Api.Submit(use.Pointer, ref desc, out pointer, out error), error);
            }
            request.Adopt(pointer);
        }

        private IEnumerable<GenerationEvent> Enumerate(RequestOptions options,
                                                       CancellationToken token)
        {
            var call = new PendingCall(options, token, Delivery.Reader);
            token.ThrowIfCancellationRequested();
            Model.Engine.Hub.Submit(call, this);
            using (Request request = call.Request)
            {
                try
                {
                    for (bool last = false; !last;)
                    {
                        GenerationEvent next = Model.Engine.Hub.Next(call);
                        last = next.Type == EventType.Done;
                        if (last) next.Result = request.GetResult();
                        yield return next;
                    }
                }
                finally
                {
                    request.Cancel();
                    Model.Engine.Hub.Drain(call);
                }
            }
        }

        private Result Run(Call call, RunFunction function)
        {
            Result result = null;
            Blocking(call, (IntPtr session, ref OptimaRequestDesc desc, Arena arena) =>
            {
                IntPtr pointer, error;
                Status status = function(session, ref desc, out pointer, out error);
                result = call.End(status, pointer, error);
            });
            return result;
        }

        // A latch for each call: the token and Dispose trigger it.
        private void Blocking(Call call, Body body)
        {
            call.Token.ThrowIfCancellationRequested();
            using (var latch = new OptimaCancelHandle())
            {
                IntPtr pointer, error;
                Status status = OptimaLibrary.Api.CancelCreate(out pointer, out error);
                OptimaException.Check(status, error);
                latch.Adopt(pointer);
                lock (running) running.Add(latch);
                try
                {
                    using (call.Token.Register(state => Trigger((OptimaCancelHandle)state), latch))
                    using (var arena = new Arena())
                    using (HandleUse use = handle.Use())
                    {
                        OptimaRequestDesc desc = call.Describe(arena, Model.Info.Vocabulary);
                        desc.Cancel = pointer;
                        body(use.Pointer, ref desc, arena);
                    }
                }
                finally
                {
                    lock (running) running.Remove(latch);
                }
            }
        }

        private static void Trigger(OptimaCancelHandle latch)
        {
            using (HandleUse use = latch.Use()) OptimaLibrary.Api.CancelTrigger(use.Pointer);
        }
    }
}
