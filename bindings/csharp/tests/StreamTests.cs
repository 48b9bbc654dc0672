using System;
using System.Collections.Generic;
using System.Diagnostics;
using System.Linq;
using System.Text;
using System.Threading;
using System.Threading.Tasks;

namespace SitsOptima.Tests
{
    /// <summary>
    /// Every way to take events, with the collector running between them. A grammar makes the model
    /// write a text whose characters are several tokens each.
    /// </summary>
    internal static class StreamTests
    {
        private const string Text = "na\u00EFve \u4E2D\u6587 \U0001F642!";

        public static void Callback()
        {
            using (var host = new Host())
            {
                var seen = new Recorder();
                Result result = host.Session.Generate(MultiByte(), seen.Take);
                seen.Check(result);
            }
        }

        public static void Enumeration()
        {
            using (var host = new Host())
            {
                var seen = new Recorder();
                foreach (GenerationEvent e in host.Session.Stream(MultiByte())) seen.Take(e);
                seen.Check(seen.Last.Result);
                Check.Same(host.Session.GetTokens().Skip(seen.Last.Result.PromptIds.Length),
                           seen.Last.Result.TokenIds, "the session's tokens");
            }
        }

        public static void Awaiting()
        {
            using (var host = new Host())
            {
                AwaitAll(host.Session).Wait();
            }
        }

        private static async Task AwaitAll(Session session)
        {
            var seen = new Recorder();
            EventStream stream = session.StreamAsync(MultiByte()).GetAsyncEnumerator();
            while (await stream.MoveNextAsync()) seen.Take(stream.Current);
            Check.True(!await stream.MoveNextAsync(), "nothing behind the last event");
            seen.Check(stream.Result);
            await stream.DisposeAsync();
        }

        public static void Events()
        {
            using (var host = new Host())
            {
                var seen = new Recorder();
                int thread = Thread.CurrentThread.ManagedThreadId;
                using (Request request = host.Session.Submit(MultiByte(), (sender, e) =>
                {
                    Check.Equal(thread, Thread.CurrentThread.ManagedThreadId, "thread");
                    seen.Take(e);
                }))
                {
                    int raised = 0;
                    while (seen.Last == null) raised += host.Engine.Poll(TimeSpan.FromSeconds(1));
                    Check.Equal(seen.Count, raised, "events raised");
                    Check.True(request.IsDone && request.Wait(TimeSpan.Zero), "done");
                    Check.Equal(0, host.Engine.Poll(TimeSpan.FromSeconds(-1)), "nothing is left");
                    seen.Check(seen.Last.Result);
                    Check.Same(seen.Last.Result.TokenIds, request.GetResult().TokenIds, "result");
                }
            }
        }

        /// <summary>The host turns the engine, step by step and by enumerating.</summary>
        public static void HostDriven()
        {
            var options = new EngineOptions { Threads = 1, Drive = Drive.Host };
            using (var host = new Host("llama-q8_0", null, options))
            {
                var seen = new Recorder();
                using (host.Session.Submit(MultiByte(), (sender, e) => seen.Take(e)))
                {
                    while (seen.Last == null)
                    {
                        host.Engine.Step();
                        host.Engine.Poll(TimeSpan.Zero);
                    }
                }
                seen.Check(seen.Last.Result);
                Check.Same(host.Golden.ContinuationIds,
                           host.Session.Stream(host.Request()).Last().Result.TokenIds, "stream");
                Check.Throws<InvalidOperationException>(
                    () => host.Session.StreamAsync(host.Request()), "awaiting needs a thread");
            }
        }

        /// <summary>What a handler throws comes out of Poll; the other events stay.</summary>
        public static void HandlerThatThrows()
        {
            using (var host = new Host())
            {
                int count = 0;
                bool done = false;
                RequestOptions options = host.Request();
                using (host.Session.Submit(options, (sender, e) =>
                {
                    if (e.Type == EventType.Token && ++count == 2)
                    {
                        throw new TimeZoneNotFoundException();
                    }
                    done = e.Type == EventType.Done;
                }))
                {
                    Check.Throws<TimeZoneNotFoundException>(() =>
                    {
                        while (!done) host.Engine.Poll(TimeSpan.FromSeconds(1));
                    }, "the handler's exception");
                    while (!done) host.Engine.Poll(TimeSpan.FromSeconds(1));
                }
                Check.Equal((int)options.MaxTokens, count, "tokens");
            }
        }

        /// <summary>Readers, awaiters and a poller of one engine.</summary>
        public static void AllAtOnce()
        {
            using (var host = new Host("llama-q8_0", null, new EngineOptions { Threads = 2 }))
            {
                var work = new List<Task<int[]>>();
                for (int i = 0; i < 4; ++i)
                {
                    Session session = host.Model.CreateSession();
                    if (i % 2 == 0)
                    {
                        work.Add(Task.Factory.StartNew(
                            () => session.Stream(host.Request()).Last().Result.TokenIds,
                            TaskCreationOptions.LongRunning));
                    }
                    else
                    {
                        work.Add(TokensOf(session, host.Request()));
                    }
                    work[i].ContinueWith(task => session.Dispose());
                }
                int[] polled = null;
                using (host.Session.Submit(host.Request(), (sender, e) =>
                {
                    if (e.Type == EventType.Done) polled = e.Result.TokenIds;
                }))
                {
                    while (polled == null) host.Engine.Poll(TimeSpan.FromMilliseconds(5));
                }
                work.Add(Task.FromResult(polled));
                foreach (Task<int[]> task in work)
                {
                    Check.Same(host.Golden.ContinuationIds, task.Result, "output");
                }
            }
        }

        private static async Task<int[]> TokensOf(Session session, RequestOptions options)
        {
            return (await session.GenerateAsync(options)).TokenIds;
        }

        /// <summary>A stream that is left early is over for the engine too.</summary>
        public static void LeavingEarly()
        {
            using (var host = new Host())
            {
                RequestOptions endless = CancelTests.Endless();
                foreach (GenerationEvent e in host.Session.Stream(endless))
                {
                    if (e.Type == EventType.Token) break;
                }
                // Where a slow machine ends it late, whoever polls next lets go of it.
                var watch = Stopwatch.StartNew();
                while (Cookie.Live > 0 && watch.Elapsed < TimeSpan.FromSeconds(60))
                {
                    host.Engine.Poll(TimeSpan.FromSeconds(1));
                }
                Check.Equal(0, Cookie.Live, "cookies");
                host.CheckUsable("after a stream");
                EventStream stream = host.Session.StreamAsync(endless);
                Check.True(stream.MoveNextAsync().Result, "an event");
                stream.DisposeAsync().Wait();
                host.CheckUsable("after an awaited stream");
            }
        }

        private static RequestOptions MultiByte()
        {
            return new RequestOptions("say")
            {
                Grammar = "root ::= \"" + Text + "\"",
                GrammarKind = GrammarKind.Gbnf,
                MaxTokens = 100,
            };
        }

        /// <summary>Collects events while memory is moved about.</summary>
        private sealed class Recorder
        {
            private readonly StringBuilder text = new StringBuilder();
            private readonly List<byte> bytes = new List<byte>();
            private readonly List<int> tokens = new List<int>();
            private bool split;

            public GenerationEvent Last { get; private set; }

            public int Count { get; private set; }

            public Verdict Take(GenerationEvent e)
            {
                GC.Collect();
                ++Count;
                Tests.Check.True(e.Text.IndexOf('\uFFFD') < 0, "whole code points: " + e.Text);
                text.Append(e.Text);
                bytes.AddRange(e.Bytes);
                if (e.Type == EventType.Token)
                {
                    Tests.Check.Equal((long)tokens.Count, e.Index, "index");
                    tokens.Add(e.Token);
                    split |= e.Text.Length == 0 && e.Bytes.Length > 0;
                }
                if (e.Type == EventType.Done) Last = e;
                return Verdict.Continue;
            }

            public void Check(Result result)
            {
                Tests.Check.Equal(Text, text.ToString(), "text");
                Tests.Check.Equal(Text, result.Text, "text of the result");
                Tests.Check.Same(Encoding.UTF8.GetBytes(Text), bytes.Take(
                    Encoding.UTF8.GetByteCount(Text)), "bytes");
                Tests.Check.Same(result.TokenIds, tokens, "tokens");
                Tests.Check.True(split, "a character was split over tokens");
                Tests.Check.Equal(Finish.Stop, Last.Finish, "finish");
            }
        }
    }
}
