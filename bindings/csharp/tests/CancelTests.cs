using System;
using System.Collections.Generic;
using System.Linq;
using System.Threading;
using System.Threading.Tasks;

namespace SitsOptima.Tests
{
    internal static class CancelTests
    {
        /// <summary>As many tokens as the context takes.</summary>
        public static RequestOptions Endless()
        {
            return new RequestOptions("on and on")
            {
                Flags = RequestFlags.IgnoreEos | RequestFlags.ContextShift,
                MaxTokens = 1000000,
            };
        }

        public static void FromAnotherThread()
        {
            using (var host = new Host())
            using (var source = new CancellationTokenSource())
            {
                var begun = new ManualResetEventSlim();
                Task other = Task.Factory.StartNew(() =>
                {
                    begun.Wait();
                    source.Cancel();
                }, TaskCreationOptions.LongRunning);
                int after = 0;
                var caught = Check.Throws<GenerationCanceledException>(
                    () => host.Session.Generate(Endless(), e =>
                    {
                        if (source.IsCancellationRequested) ++after;
                        if (e.Type != EventType.Token || e.Index != 2) return Verdict.Continue;
                        begun.Set();
                        other.Wait();
                        return Verdict.Continue;
                    }, source.Token), "blocking");
                Check.Equal(source.Token, caught.CancellationToken, "token");
                // One step may be under way when the latch falls, and the last event comes.
                Check.True(after <= 2, "events after it: " + after);
                Check.Equal(Finish.Cancelled, caught.Result.Finish, "finish");
                Check.True(caught.Result.TokenIds.Length <= 4,
                           "tokens: " + caught.Result.TokenIds.Length);
                host.CheckUsable("afterwards");
            }
        }

        /// <summary>
        /// In the prompt no further chunk is computed. Where the host drives, the engine does not
        /// compute beside the callback.
        /// </summary>
        public static void InPrefill()
        {
            var chunks = new SessionOptions { PrefillChunkTokens = 16 };
            var options = new EngineOptions { Threads = 1, Drive = Drive.Host };
            using (var host = new Host("llama-q8_0", chunks, options))
            using (var source = new CancellationTokenSource())
            {
                var done = new List<long>();
                RequestOptions request = Endless();
                request.Prompt = null;
                request.PromptIds = Enumerable.Repeat(40, 200).ToArray();
                var caught = Check.Throws<GenerationCanceledException>(
                    () => host.Session.Generate(request, e =>
                    {
                        if (e.Type != EventType.Prefill) return Verdict.Continue;
                        done.Add(e.TokensDone);
                        if (done.Count == 1) Task.Run(() => source.Cancel()).Wait();
                        return Verdict.Continue;
                    }, source.Token), "prefill");
                Check.Equal(0, caught.Result.TokenIds.Length, "tokens");
                Check.Same(new[] { 16L }, done, "progress");
                host.CheckUsable("afterwards");
            }
        }

        public static void BeforeStart()
        {
            using (var host = new Host())
            {
                var token = new CancellationToken(true);
                Check.Throws<OperationCanceledException>(
                    () => host.Session.Generate(host.Request(), null, token), "blocking");
                Check.Throws<OperationCanceledException>(
                    () => host.Session.Stream(host.Request(), token).Count(), "stream");
                Check.Throws<OperationCanceledException>(
                    () => host.Session.Submit(host.Request(), null, token), "submit");
                Check.True(host.Session.GenerateAsync(host.Request(), token).IsCanceled, "task");
                Check.Throws<OperationCanceledException>(
                    () => host.Engine.OpenModel(host.Golden.Path, null, token), "loading");
                Check.Equal(0UL, host.Engine.QueryMetrics().RequestsFinished, "nothing ran");
                host.CheckUsable("afterwards");
            }
        }

        public static void AwaitedTask()
        {
            using (var host = new Host())
            using (var source = new CancellationTokenSource())
            {
                EventStream stream = host.Session.StreamAsync(Endless(), source.Token);
                Check.True(stream.MoveNextAsync().Result, "an event");
                source.Cancel();
                Task<bool> rest = Rest(stream);
                var caught = Check.Throws<AggregateException>(() => rest.Wait(), "the task");
                Check.True(caught.InnerException is OperationCanceledException, "its exception");
                Check.True(rest.IsCanceled, "the task is cancelled");
                stream.Dispose();
                host.CheckUsable("afterwards");
            }
        }

        private static async Task<bool> Rest(EventStream stream)
        {
            while (await stream.MoveNextAsync())
            {
                // Until it ends.
            }
            return true;
        }

        public static void Enumeration()
        {
            using (var host = new Host())
            using (var source = new CancellationTokenSource())
            {
                int tokens = 0;
                Check.Throws<GenerationCanceledException>(() =>
                {
                    foreach (GenerationEvent e in host.Session.Stream(Endless(), source.Token))
                    {
                        if (e.Type == EventType.Token && ++tokens == 3) source.Cancel();
                    }
                }, "stream");
                host.CheckUsable("afterwards");
            }
        }

        /// <summary>Without a token it is no exception: the result says so.</summary>
        public static void RequestThatIsCancelled()
        {
            using (var host = new Host())
            {
                GenerationEvent last = null;
                using (Request request = host.Session.Submit(Endless(), (sender, e) =>
                {
                    if (e.Type == EventType.Token) ((Request)sender).Cancel();
                    last = e;
                }))
                {
                    while (last == null || last.Type != EventType.Done)
                    {
                        host.Engine.Poll(TimeSpan.FromSeconds(1));
                    }
                    Check.Equal(Finish.Cancelled, last.Finish, "finish");
                    Check.Equal(Finish.Cancelled, request.GetResult().Finish, "of the result");
                }
                host.CheckUsable("afterwards");
            }
        }

        /// <summary>A verdict of the callback ends it, and rolls the session back or not.</summary>
        public static void Verdicts()
        {
            using (var host = new Host())
            {
                Result result = host.Session.Generate(host.Request(), e => Verdict.Cancel);
                Check.Equal(Finish.Cancelled, result.Finish, "cancel");
                Check.Equal(0, host.Session.GetTokens().Length, "rolled back");
                result = host.Session.Generate(
                    host.Request(), e => e.Index == 4 ? Verdict.Stop : Verdict.Continue);
                Check.Equal(Finish.Host, result.Finish, "stop");
                Check.Same(host.Golden.ContinuationIds.Take(5), result.TokenIds, "tokens kept");
            }
        }

        public static void Loading()
        {
            using (var engine = new Engine(new EngineOptions { Threads = 1 }))
            using (var source = new CancellationTokenSource())
            {
                var options = new ModelOptions { Progress = new Stopper(source) };
                Check.Throws<OperationCanceledException>(
                    () => engine.OpenModel(new Golden("llama-f32").Path, options, source.Token),
                    "loading");
            }
        }

        private sealed class Stopper : IProgress<float>
        {
            private readonly CancellationTokenSource source;

            public Stopper(CancellationTokenSource source)
            {
                this.source = source;
            }

            public void Report(float value)
            {
                source.Cancel();
            }
        }
    }
}
