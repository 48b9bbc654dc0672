using System;
using System.Collections.Generic;
using System.IO;
using System.Linq;
using System.Runtime.CompilerServices;
using System.Threading;
using System.Threading.Tasks;

namespace SitsOptima.Tests
{
    internal static class LifetimeTests
    {
        private const int Rounds = 1000, Warm = 200, Sample = 50;

        /// <summary>Memory, descriptors and threads stay where they are.</summary>
        public static void ThousandRounds()
        {
            var golden = new Golden("llama-q8_0");
            long first = long.MaxValue, second = long.MaxValue, rss;
            int files = 0, threads = 0, filesNow = 0, threadsNow = 0;
            for (int i = 0; i <= Rounds; ++i)
            {
                if (i == Warm) Measure(out rss, out files, out threads);
                if (i >= Warm && i % Sample == 0)
                {
                    Measure(out rss, out filesNow, out threadsNow);
                    if (i <= (Warm + Rounds) / 2) first = Math.Min(first, rss);
                    else second = Math.Min(second, rss);
                }
                Round(golden);
            }
            // A runtime may open a few of its own.
            Check.True(filesNow < files + 8, "descriptors: " + files + ", then " + filesNow);
            Check.True(threadsNow <= threads, "threads: " + threads + ", then " + threadsNow);
            // Huge pages and the collector's heap come and go by 2 and 4 MB, hence the least of
            // several samples. A leaked session would be 1.8 MB a round, a leaked model 160 kB.
            Check.True(second - first < 8000000, "RSS: " + first + ", then " + second);
        }

        private static void Round(Golden golden)
        {
            using (var engine = new Engine(new EngineOptions { Threads = 1 }))
            using (Model model = engine.OpenModel(golden.Path))
            using (Session session = model.CreateSession())
            {
                Result result = session.Generate(
                    new RequestOptions { PromptIds = golden.PromptIds, MaxTokens = 2 },
                    e => Verdict.Continue);
                Check.Equal(golden.ContinuationIds[1], result.TokenIds[1], "output");
            }
        }

        /// <summary>What nobody disposes the finalisers do.</summary>
        public static void Finalisers()
        {
            int files, threads, filesNow, threadsNow;
            long rss;
            Abandon(3);
            Settle();
            Measure(out rss, out files, out threads);
            Abandon(20);
            Settle();
            Measure(out rss, out filesNow, out threadsNow);
            // The collector is conservative about the stack: a few of the last may be left.
            Check.True(threadsNow <= threads + 6, "threads: " + threads + ", then " + threadsNow);
            Check.True(filesNow <= files + 6, "descriptors: " + files + ", then " + filesNow);
        }

        [MethodImpl(MethodImplOptions.NoInlining)]
        private static void Abandon(int count)
        {
            // A thread of its own, whose stack is gone afterwards.
            var thread = new Thread(() =>
            {
                for (int i = 0; i < count; ++i)
                {
                    var host = new Host("llama-q8_0", null, new EngineOptions { Threads = 2 });
                    host.Session.Stream(host.Request()).Last();
                }
            });
            thread.Start();
            thread.Join();
        }

        private static void Settle()
        {
            for (int i = 0; i < 3; ++i)
            {
                GC.Collect();
                GC.WaitForPendingFinalizers();
            }
        }

        /// <summary>Handles may go in any order, also before what was made from them.</summary>
        public static void AnyOrder()
        {
            var order = new[] { 0, 1, 2, 3 };
            foreach (int[] permutation in Permutations(order))
            {
                var host = new Host();
                Session fork = host.Session.Fork();
                var owners = new IDisposable[] { host.Engine, host.Model, host.Session, fork };
                foreach (int index in permutation)
                {
                    owners[index].Dispose();
                    GC.Collect();
                }
            }
            using (var host = new Host())
            {
                Session session = host.Model.CreateSession();
                host.Model.Dispose();
                Check.Same(host.Golden.ContinuationIds, session.Generate(host.Request()).TokenIds,
                           "a session without its model's handle");
                session.Dispose();
            }
        }

        private static IEnumerable<int[]> Permutations(int[] items)
        {
            if (items.Length == 0) return new[] { new int[0] };
            return items.SelectMany(first => Permutations(items.Where(x => x != first).ToArray())
                .Select(rest => new[] { first }.Concat(rest).ToArray()));
        }

        /// <summary>Disposing what runs ends it.</summary>
        public static void DisposeWhileRunning()
        {
            using (var host = new Host())
            using (Session session = host.Model.CreateSession())
            {
                Result result = session.Generate(CancelTests.Endless(), e =>
                {
                    if (e.Index == 2) Task.Run(() => session.Dispose()).Wait();
                    return Verdict.Continue;
                });
                Check.Equal(Finish.Cancelled, result.Finish, "a blocking call");
                Session awaited = host.Model.CreateSession();
                Task<Result> task = awaited.GenerateAsync(CancelTests.Endless());
                awaited.Dispose();
                Check.Equal(Finish.Cancelled, task.Result.Finish, "an awaited one");
                task = host.Session.GenerateAsync(CancelTests.Endless());
                host.Engine.Dispose();
                Check.Equal(Finish.Cancelled, task.Result.Finish, "with the engine");
                var caught = Check.Throws<OptimaException>(() => host.Session.Generate("x", 1),
                                                           "afterwards");
                Check.Equal(Status.State, caught.Status, "status");
            }
        }

        /// <summary>
        /// Leaves work of every kind running; the program is to end all the same.
        /// </summary>
        public static int Leave()
        {
            var host = new Host();
            EventStream awaited = host.Session.StreamAsync(CancelTests.Endless());
            Check.True(awaited.MoveNextAsync().Result, "an awaited event");
            var reading = new ManualResetEventSlim();
            var reader = new Thread(() =>
            {
                Session session = host.Model.CreateSession();
                foreach (GenerationEvent e in session.Stream(CancelTests.Endless())) reading.Set();
            });
            reader.IsBackground = true;
            reader.Start();
            reading.Wait();
            var calling = new ManualResetEventSlim();
            var caller = new Thread(() => host.Model.CreateSession().Generate(
                CancelTests.Endless(), e =>
                {
                    calling.Set();
                    return Verdict.Continue;
                }));
            caller.IsBackground = true;
            caller.Start();
            calling.Wait();
            return 0;
        }

        private static void Measure(out long rss, out int files, out int threads)
        {
            Settle();
            rss = Field("VmRSS") * 1024;
            threads = (int)Field("Threads");
            files = Directory.GetFiles("/proc/self/fd").Length;
        }

        private static long Field(string name)
        {
            string line = File.ReadAllLines("/proc/self/status")
                .First(text => text.StartsWith(name + ":"));
            return long.Parse(new string(line.Where(char.IsDigit).ToArray()));
        }
    }
}
