// What an event costs a C# host; ../bench.c says for which workload, and ../compare.py compares:
//
//   mcs -langversion:7 -unsafe -optimize -out:build/Bench.exe bench/bindings/csharp/Bench.cs \
//       bindings/csharp/src/*.cs bindings/csharp/src/Raw/*.cs
//   OPTIMA_LIBRARY=build/release/lib bench/bindings/compare.py \
//       c="build/release/bin/bindings_bench $model" csharp="mono build/Bench.exe $model"
//
// The callback way is Session.Generate with a callback, the poll way Session.Submit with a handler
// and Engine.Poll. Both make a GenerationEvent with text and bytes of each event.
using System;
using System.Collections.Generic;
using System.Diagnostics;
using System.Globalization;
using System.Text;
using SitsOptima;

internal static class Bench
{
    private const int Tokens = 250, Requests = 4, RoundsDefault = 20;

    private static long tokens, bytes;
    private static bool done;

    private static int Main(string[] args)
    {
        if (args.Length < 1)
        {
            Console.Error.WriteLine("usage: Bench.exe MODEL.gguf [ROUNDS]");
            return 2;
        }
        int rounds = args.Length > 1
            ? int.Parse(args[1], CultureInfo.InvariantCulture) : RoundsDefault;
        double[] callback = Measure(args[0], Drive.Host, WithCallback, rounds);
        double[] poll = Measure(args[0], Drive.Library, WithPoll, rounds);
        Console.WriteLine(string.Format(
            CultureInfo.InvariantCulture,
            "{{\"language\": \"csharp\", \"rounds\": {0}, {1}, {2}, \"tokens\": {3}, \"bytes\": {4}}}",
            rounds, Figures("callback", callback), Figures("poll", poll), tokens, bytes));
        return 0;
    }

    private static string Figures(string way, double[] ns)
    {
        return string.Format(
            CultureInfo.InvariantCulture,
            "\"{0}_ns_per_event\": {1:0}, \"{0}_ns_per_event_median\": {2:0}", way, ns[0],
            ns[ns.Length / 2]);
    }

    // Sorted ns per event of the rounds. The first round, which warms up, is not counted.
    private static double[] Measure(string path, Drive drive, Action<Engine, Session> run,
                                    int rounds)
    {
        var ns = new List<double>();
        using (var engine = new Engine(new EngineOptions { Threads = 1, Drive = drive }))
        using (Model model = engine.OpenModel(path))
        using (Session session = model.CreateSession())
        {
            for (int round = -1; round < rounds; ++round)
            {
                var watch = new Stopwatch();
                tokens = bytes = 0;
                for (int i = 0; i < Requests; ++i)
                {
                    session.Reset();
                    watch.Start();
                    run(engine, session);
                    watch.Stop();
                }
                if (tokens != Tokens * Requests)
                {
                    throw new InvalidOperationException(tokens + " tokens instead of "
                                                        + Tokens * Requests);
                }
                double spent = watch.ElapsedTicks * 1e9 / Stopwatch.Frequency;
                if (round >= 0) ns.Add(spent / tokens);
            }
        }
        ns.Sort();
        return ns.ToArray();
    }

    private static RequestOptions Workload()
    {
        return new RequestOptions("a") { Flags = RequestFlags.IgnoreEos, MaxTokens = Tokens };
    }

    private static void Count(GenerationEvent e)
    {
        if (e.Type == EventType.Token) ++tokens;
        bytes += Encoding.UTF8.GetByteCount(e.Text);
        done = e.Type == EventType.Done;
    }

    private static void WithCallback(Engine engine, Session session)
    {
        session.Generate(Workload(), e =>
        {
            Count(e);
            return Verdict.Continue;
        });
    }

    private static void WithPoll(Engine engine, Session session)
    {
        done = false;
        using (session.Submit(Workload(), (sender, e) => Count(e)))
        {
            while (!done) engine.Poll(TimeSpan.FromSeconds(-1));
        }
    }
}
