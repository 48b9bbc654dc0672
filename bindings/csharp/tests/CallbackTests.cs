using System;
using System.IO;
using System.Linq;
using System.Threading;

namespace SitsOptima.Tests
{
    internal static class CallbackTests
    {
        /// <summary>The very exception reaches the caller; the session is as before.</summary>
        public static void ExceptionIsCarried()
        {
            using (var host = new Host())
            {
                host.CheckUsable("before");
                int[] before = host.Session.GetTokens();
                var thrown = new InvalidDataException("mine");
                var request = new RequestOptions(" and more")
                {
                    Flags = RequestFlags.Append,
                    MaxTokens = 20,
                };
                var caught = Check.Throws<InvalidDataException>(
                    () => host.Session.Generate(request, e =>
                    {
                        if (e.Index == 3) throw thrown;
                        return Verdict.Continue;
                    }), "thrown");
                Check.True(ReferenceEquals(thrown, caught), "the same object");
                Check.True(caught.StackTrace.Contains("CallbackTests"), "with its stack");
                Check.Same(before, host.Session.GetTokens(), "rolled back");
                host.CheckUsable("afterwards");
            }
        }

        public static void ExceptionOfTheLogitsHook()
        {
            using (var host = new Host())
            {
                RequestOptions request = host.Request();
                request.OnLogits = (logits, tokens) => throw new InvalidDataException("mine");
                Check.Throws<InvalidDataException>(() => host.Session.Generate(request),
                                                   "blocking");
                Check.Throws<InvalidDataException>(
                    () => host.Session.Stream(request).Count(), "on the engine's thread");
                host.CheckUsable("afterwards");
            }
        }

        public static void ExceptionOfTheProgress()
        {
            using (var engine = new Engine(new EngineOptions { Threads = 1 }))
            {
                var options = new ModelOptions { Progress = new Thrower() };
                Check.Throws<InvalidDataException>(
                    () => engine.OpenModel(new Golden("llama-f32").Path, options), "progress");
            }
        }

        private sealed class Thrower : IProgress<float>
        {
            public void Report(float value)
            {
                throw new InvalidDataException("mine");
            }
        }

        /// <summary>From inside a callback the same engine is busy; what it says can be caught.
        /// </summary>
        public static void ReentrancyIsBusy()
        {
            using (var host = new Host())
            using (Session other = host.Model.CreateSession())
            {
                int busy = 0;
                Result result = host.Session.Generate(host.Request(), e =>
                {
                    if (e.Index != 1) return Verdict.Continue;
                    Check.Throws<BusyException>(() => host.Session.Generate("x", 1), "itself");
                    Check.Throws<BusyException>(() => other.Generate("x", 1), "another session");
                    Check.Throws<BusyException>(() => host.Engine.Poll(TimeSpan.Zero), "poll");
                    Check.Throws<BusyException>(() => host.Session.Reset(), "reset");
                    ++busy;
                    return Verdict.Continue;
                });
                Check.Equal(1, busy, "times");
                Check.Same(host.Golden.ContinuationIds, result.TokenIds, "output");
                Check.Throws<BusyException>(
                    () => host.Session.Generate(host.Request(), e => Inner(host)), "not caught");
            }
        }

        private static Verdict Inner(Host host)
        {
            host.Session.Generate("x", 1);
            return Verdict.Continue;
        }

        public static void Log()
        {
            int messages = 0;
            var options = new EngineOptions
            {
                Threads = 1,
                Log = (level, message) =>
                {
                    Check.True(message.Length > 0, "a message");
                    Interlocked.Increment(ref messages);
                    GC.Collect();
                    throw new InvalidDataException("mine");
                },
            };
            using (var host = new Host("llama-q8_0", null, options))
            {
                host.CheckUsable("with a log that throws");
                Check.True(messages > 0, "messages: " + messages);
                Check.True(host.Engine.LogFailure is InvalidDataException, "its exception is kept");
            }
        }
    }
}
