// Text as it is made, Ctrl-C to stop, a chat template: Stream.exe MODEL.gguf ["question"]
using System;
using System.Threading;
using System.Threading.Tasks;
using SitsOptima;

internal static class Program
{
    private static int Main(string[] args)
    {
        if (args.Length < 1)
        {
            Console.Error.WriteLine("usage: Stream.exe MODEL.gguf [\"question\"]");
            return 2;
        }
        string question = args.Length > 1 ? args[1] : "Why is the sky blue?";
        using (var source = new CancellationTokenSource())
        using (var engine = new Engine())
        using (Model model = engine.OpenModel(args[0]))
        using (Session session = model.CreateSession())
        {
            Console.CancelKeyPress += (sender, e) =>
            {
                e.Cancel = true;
                source.Cancel();
            };
            return Answer(model, session, question, source.Token).Result;
        }
    }

    private static async Task<int> Answer(Model model, Session session, string question,
                                          CancellationToken token)
    {
        var request = new RequestOptions(question) { MaxTokens = 128 };
        if (model.ChatTemplate.Length > 0)
        {
            request.Prompt = model.RenderChat(new ChatMessage("user", question));
            request.Flags = RequestFlags.NoAddSpecial; // The template wrote them.
        }
        EventStream events = session.StreamAsync(request, token);
        try
        {
            // With C# 8 and later: await foreach (GenerationEvent e in events).
            while (await events.MoveNextAsync()) Console.Write(events.Current.Text);
            Console.WriteLine("\n[" + events.Result.Finish + " after "
                              + events.Result.TokenIds.Length + " tokens]");
            return 0;
        }
        catch (GenerationCanceledException cancelled)
        {
            Console.WriteLine("\n[" + cancelled.Message + "]");
            return 1;
        }
        finally
        {
            await events.DisposeAsync();
        }
    }
}
