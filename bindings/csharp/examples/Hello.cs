// The shortest way to an answer: Hello.exe MODEL.gguf ["prompt"]
using System;
using SitsOptima;

internal static class Hello
{
    private static int Main(string[] args)
    {
        if (args.Length < 1)
        {
            Console.Error.WriteLine("usage: Hello.exe MODEL.gguf [\"prompt\"]");
            return 2;
        }
        string prompt = args.Length > 1 ? args[1] : "The capital of France is";
        using (var engine = new Engine())
        using (Model model = engine.OpenModel(args[0]))
        using (Session session = model.CreateSession())
        {
            Console.WriteLine(prompt + session.Generate(prompt, 32).Text);
        }
        return 0;
    }
}
