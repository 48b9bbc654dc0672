// A test program without a framework: Tests.exe GROUP runs the methods of a group, prints what
// failed, and exits with their number. Debian's Mono has no test framework to link.
using System;
using System.Collections.Generic;
using System.Globalization;
using System.IO;
using System.Linq;
using System.Reflection;
using System.Text.RegularExpressions;
using System.Threading;

namespace SitsOptima.Tests
{
    /// <summary>A claim that does not hold.</summary>
    internal sealed class FailedException : Exception
    {
        public FailedException(string message) : base(message)
        {
        }
    }

    internal static class Check
    {
        private static int claims;

        public static int Claims
        {
            get { return Volatile.Read(ref claims); }
        }

        public static void True(bool holds, string what)
        {
            Interlocked.Increment(ref claims);
            if (!holds) throw new FailedException(what);
        }

        public static void Equal<T>(T expected, T actual, string what)
        {
            True(EqualityComparer<T>.Default.Equals(expected, actual),
                 what + ": expected " + expected + ", got " + actual);
        }

        public static void Same<T>(IEnumerable<T> expected, IEnumerable<T> actual, string what)
        {
            True(expected.SequenceEqual(actual),
                 what + ": expected " + string.Join(" ", expected) + ", got "
                 + string.Join(" ", actual));
        }

        /// <summary>The exception of exactly this type that the action throws.</summary>
        public static T Throws<T>(Action action, string what) where T : Exception
        {
            try
            {
                action();
            }
            catch (T caught)
            {
                Equal(typeof(T), caught.GetType(), what);
                return caught;
            }
            throw new FailedException(what + ": no " + typeof(T).Name);
        }
    }

    /// <summary>A tiny model and what transformers computed with it.</summary>
    internal sealed class Golden
    {
        private readonly string json;
        private readonly string stem;

        public Golden(string name)
        {
            string folder = Environment.GetEnvironmentVariable("OPTIMA_TEST_GOLDENS");
            Check.True(folder != null, "OPTIMA_TEST_GOLDENS names the folder of the tiny models");
            stem = System.IO.Path.Combine(folder, name);
            json = File.ReadAllText(stem + ".json");
        }

        public string Path
        {
            get { return stem + ".gguf"; }
        }

        public string Prompt
        {
            get { return Regex.Unescape(Field("prompt\": \"((?:[^\"\\\\]|\\\\.)*)\"")); }
        }

        public string Continuation
        {
            get { return Regex.Unescape(Field("continuation\": \"((?:[^\"\\\\]|\\\\.)*)\"")); }
        }

        public int[] PromptIds
        {
            get { return Ids("prompt_ids"); }
        }

        public int[] ContinuationIds
        {
            get { return Ids("continuation_ids"); }
        }

        /// <summary>The logits after a position.</summary>
        public float[] Logits(int position, int vocabulary)
        {
            byte[] all = File.ReadAllBytes(stem + ".logits");
            var row = new float[vocabulary];
            Buffer.BlockCopy(all, position * vocabulary * sizeof(float), row, 0,
                             vocabulary * sizeof(float));
            return row;
        }

        private int[] Ids(string name)
        {
            return Field(name + "\": \\[([^\\]]*)\\]").Split(',')
                .Select(id => int.Parse(id, CultureInfo.InvariantCulture)).ToArray();
        }

        private string Field(string pattern)
        {
            Match match = Regex.Match(json, "\"" + pattern);
            Check.True(match.Success, "the golden file has " + pattern);
            return match.Groups[1].Value;
        }
    }

    /// <summary>An engine, a tiny model and a session, disposed together.</summary>
    internal sealed class Host : IDisposable
    {
        public readonly Golden Golden;
        public readonly Engine Engine;
        public readonly Model Model;
        public readonly Session Session;

        public Host(string name = "llama-q8_0", SessionOptions session = null,
                    EngineOptions engine = null)
        {
            Golden = new Golden(name);
            Engine = new Engine(engine ?? new EngineOptions { Threads = 1 });
            Model = Engine.OpenModel(Golden.Path);
            Session = Model.CreateSession(session);
        }

        /// <summary>The golden prompt, as long as the golden continuation.</summary>
        public RequestOptions Request()
        {
            return new RequestOptions(Golden.Prompt) { MaxTokens = Golden.ContinuationIds.Length };
        }

        /// <summary>The session computes what transformers did: it is usable.</summary>
        public void CheckUsable(string what)
        {
            Check.Same(Golden.ContinuationIds, Session.Generate(Request()).TokenIds, what);
        }

        public void Dispose()
        {
            Session.Dispose();
            Model.Dispose();
            Engine.Dispose();
        }
    }

    internal static class Program
    {
        private static readonly Dictionary<string, Type> Groups = new Dictionary<string, Type>
        {
            { "layout", typeof(LayoutTests) },
            { "generate", typeof(GenerateTests) },
            { "sessions", typeof(SessionTests) },
            { "stream", typeof(StreamTests) },
            { "cancel", typeof(CancelTests) },
            { "callbacks", typeof(CallbackTests) },
            { "errors", typeof(ErrorTests) },
            { "lifetime", typeof(LifetimeTests) },
            { "missing", typeof(MissingTests) },
        };

        private static int Main(string[] args)
        {
            Type group;
            if (args.Length == 1 && args[0] == "leave") return LifetimeTests.Leave();
            if (args.Length < 1 || !Groups.TryGetValue(args[0], out group))
            {
                Console.Error.WriteLine("usage: Tests.exe " + string.Join("|", Groups.Keys));
                return 2;
            }
            int failed = 0;
            MethodInfo[] tests = group.GetMethods(BindingFlags.Static | BindingFlags.Public)
                .Where(test => test.ReturnType == typeof(void) && test.GetParameters().Length == 0)
                .ToArray();
            foreach (MethodInfo test in tests)
            {
                if (args.Length > 1 && test.Name != args[1]) continue;
                if (!Run(test)) ++failed;
            }
            Console.WriteLine(tests.Length + " tests, " + Check.Claims + " claims, " + failed
                              + " failed");
            return failed > 0 || Check.Claims == 0 ? 1 : 0;
        }

        private static bool Run(MethodInfo test)
        {
            try
            {
                test.Invoke(null, null);
                // Every cookie was released, and once: a second release would free a stranger's.
                Check.Equal(0, Cookie.Live, "cookies that were not released");
                Console.WriteLine("ok " + test.Name);
                return true;
            }
            catch (Exception caught)
            {
                Exception cause = (caught as TargetInvocationException)?.InnerException ?? caught;
                Console.WriteLine("FAILED " + test.Name + ": " + cause);
                return false;
            }
        }
    }
}
