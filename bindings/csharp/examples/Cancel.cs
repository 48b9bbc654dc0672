// Three ways to end an answer early, and the session goes on: Cancel.exe MODEL.gguf
using System;
using System.Threading;
using System.Threading.Tasks;
using SitsOptima;

internal static class Cancel
{
    private static int Main(string[] args)
    {
        if (args.Length < 1)
        {
            Console.Error.WriteLine("usage: Cancel.exe MODEL.gguf");
            return 2;
        }
        using (var engine = new Engine())
        using (Model model = engine.OpenModel(args[0]))
        using (Session session = model.CreateSession())
        {
            FromAnotherThread(session);
            AtADeadline(session);
            ByTheCallback(session);
            Result result = session.Generate("One, two,", 4);
            Console.WriteLine("afterwards: " + result.Finish + " after " + result.TokenIds.Length
                              + " tokens");
        }
        return 0;
    }

    private static RequestOptions Endless()
    {
        return new RequestOptions("Count: one, two, three,")
        {
            Flags = RequestFlags.IgnoreEos | RequestFlags.ContextShift,
            MaxTokens = 1000000,
        };
    }

    private static void FromAnotherThread(Session session)
    {
        using (var source = new CancellationTokenSource())
        {
            Task.Delay(50).ContinueWith(task => source.Cancel());
            try
            {
                session.Generate(Endless(), null, source.Token);
            }
            catch (GenerationCanceledException cancelled)
            {
                Console.WriteLine("token: " + cancelled.Result.Finish);
            }
        }
    }

    private static void AtADeadline(Session session)
    {
        RequestOptions request = Endless();
        request.Deadline = TimeSpan.FromMilliseconds(50);
        try
        {
            session.Generate(request);
        }
        catch (DeadlineException late)
        {
            Console.WriteLine("deadline: " + late.Limit + " ms");
        }
    }

    private static void ByTheCallback(Session session)
    {
        Result result = session.Generate(
            Endless(), e => e.Index >= 4 ? Verdict.Stop : Verdict.Continue);
        Console.WriteLine("callback: " + result.Finish + " after " + result.TokenIds.Length
                          + " tokens");
    }
}
