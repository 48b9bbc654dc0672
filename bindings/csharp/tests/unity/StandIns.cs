// The few names of UnityEngine that UnityExample.cs uses, and a game loop that turns it.
using System;
using System.IO;
using System.Threading;

namespace UnityEngine
{
    public class MonoBehaviour
    {
    }

    public static class Application
    {
        public static string streamingAssetsPath;
    }

    public static class SystemInfo
    {
        public static readonly int processorCount = Environment.ProcessorCount;
    }

    public static class Debug
    {
        public static void Log(object message)
        {
            Console.Error.WriteLine(message);
        }
    }
}

internal static class GameLoop
{
    // Arguments: a model and the answer expected of it.
    private static int Main(string[] args)
    {
        UnityEngine.Application.streamingAssetsPath = Path.GetDirectoryName(args[0]);
        var example = new UnityExample { modelPath = Path.GetFileName(args[0]) };
        example.Start();
        while (!example.Done)
        {
            example.Update();
            Thread.Sleep(1);
        }
        example.OnDestroy();
        if (example.Answer == args[1]) return 0;
        Console.WriteLine("expected " + args[1] + "\ngot " + example.Answer);
        return 1;
    }
}
