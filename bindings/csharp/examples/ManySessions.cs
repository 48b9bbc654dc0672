// Sixteen conversations on one model, each awaited by itself: ManySessions.exe MODEL.gguf
//
// All begin with the same instructions, which are computed once. Each conversation has two turns;
// the second is asked as soon as the first is answered, whatever the others do.
using System;
using System.Linq;
using System.Threading.Tasks;
using SitsOptima;

internal static class ManySessions
{
    private const int Conversations = 16;
    private const string Instructions =
        "You are the keeper of a small museum. Answer each visitor in one short sentence.\n";

    private static int Main(string[] args)
    {
        if (args.Length < 1)
        {
            Console.Error.WriteLine("usage: ManySessions.exe MODEL.gguf");
            return 2;
        }
        using (var engine = new Engine())
        using (Model model = engine.OpenModel(args[0]))
        {
            Task<long>[] all = Enumerable.Range(1, Conversations)
                .Select(number => Talk(model, number)).ToArray();
            Task.WaitAll(all);
            Console.WriteLine(all.Sum(task => task.Result)
                              + " prompt tokens were not computed again");
        }
        return 0;
    }

    private static async Task<long> Talk(Model model, int number)
    {
        using (Session session = model.CreateSession())
        {
            Result first = await session.GenerateAsync(new RequestOptions(
                Instructions + "Visitor: What is in room " + number + "?\nKeeper:")
            {
                MaxTokens = 12,
            });
            Console.WriteLine(number + ".1 " + first.Text);
            Result second = await session.GenerateAsync(new RequestOptions(
                "\nVisitor: And behind it?\nKeeper:")
            {
                MaxTokens = 12,
                Flags = RequestFlags.Append,
            });
            Console.WriteLine(number + ".2 " + second.Text);
            return first.Counters.CachedTokens + second.Counters.CachedTokens;
        }
    }
}
