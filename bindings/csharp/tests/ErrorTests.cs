using System;
using System.IO;
using System.Linq;
using System.Runtime.InteropServices;
using System.Threading;
using SitsOptima.Raw;

namespace SitsOptima.Tests
{
    internal static class ErrorTests
    {
        public static void WrongPath()
        {
            using (var engine = new Engine(new EngineOptions { Threads = 1 }))
            {
                var caught = Check.Throws<FileException>(
                    () => engine.OpenModel("no/such/model.gguf"), "a missing file");
                Check.Equal(Status.Io, caught.Status, "status");
                Check.True(caught.Message.Contains("no/such/model.gguf"), caught.Message);
                string path = System.IO.Path.GetTempFileName();
                File.WriteAllText(path, "this is no model at all, and not short enough to be one");
                caught = Check.Throws<FileException>(() => engine.OpenModel(path), "a text file");
                File.Delete(path);
                Check.Equal(Status.Format, caught.Status, "status");
            }
        }

        public static void ContextFull()
        {
            using (var host = new Host("llama-q8_0", new SessionOptions { ContextTokens = 32 }))
            {
                var caught = Check.Throws<ContextFullException>(
                    () => host.Session.Generate(host.Request()), "a long prompt");
                Check.Equal(host.Golden.PromptIds.Length, (int)caught.Wanted, "wanted");
                Check.Equal(32, (int)caught.Limit, "limit");
                Check.True(caught.Message.Contains("44") && caught.Message.Contains("32"),
                           caught.Message);
                Check.Throws<ContextFullException>(
                    () => host.Session.Stream(host.Request()).Count(), "a stream");
                var task = host.Session.GenerateAsync(host.Request());
                var wrapped = Check.Throws<AggregateException>(() => task.Wait(), "a task");
                Check.True(wrapped.InnerException is ContextFullException, "its exception");
                Result result = host.Session.Generate(new RequestOptions("short")
                {
                    Flags = RequestFlags.IgnoreEos,
                });
                Check.Equal(Finish.Context, result.Finish, "an output without end");
                Check.Equal(32, host.Session.GetTokens().Length, "tokens");
            }
        }

        public static void Deadline()
        {
            using (var host = new Host())
            {
                RequestOptions request = CancelTests.Endless();
                request.Deadline = TimeSpan.FromMilliseconds(20);
                var caught = Check.Throws<DeadlineException>(() => host.Session.Generate(request),
                                                             "blocking");
                Check.Equal(20L, caught.Limit.Value, "limit");
                Check.Equal(Finish.Deadline, caught.Result.Finish, "finish");
                Check.Equal(caught.Result.TokenIds.Length, (int)caught.Available, "tokens");
                Check.Throws<DeadlineException>(() => host.Session.Stream(request).Count(),
                                                "a stream");
                host.CheckUsable("afterwards");
            }
        }

        public static void Busy()
        {
            using (var host = new Host())
            using (Request running = host.Session.Submit(CancelTests.Endless()))
            {
                var caught = Check.Throws<BusyException>(() => host.Session.Generate("x", 1),
                                                         "second");
                Check.Equal(Status.Busy, caught.Status, "status");
                running.Cancel();
                Check.True(running.Wait(TimeSpan.FromMinutes(5)), "the first ends");
                while (Cookie.Live > 0) host.Engine.Poll(TimeSpan.FromSeconds(1));
                host.CheckUsable("afterwards");
            }
        }

        public static void Arguments()
        {
            using (var host = new Host())
            {
                var caught = Check.Throws<OptimaException>(
                    () => host.Session.Generate(new RequestOptions("x") { Temperature = -1 }),
                    "a temperature below zero");
                Check.Equal(Status.Arg, caught.Status, "status");
                caught = Check.Throws<OptimaException>(
                    () => host.Session.Generate(new RequestOptions()), "no prompt");
                Check.Equal(Status.Arg, caught.Status, "status");
                Check.Throws<ArgumentNullException>(
                    () => host.Session.Generate((RequestOptions)null), "no options");
                Check.Throws<ArgumentNullException>(
                    () => host.Session.Generate(new RequestOptions("x") { Stops = new string[1] }),
                    "no stop");
                Check.Throws<ArgumentException>(
                    () => host.Session.EmbedTexts(new[] { "x", null }), "no text");
                Check.Throws<UnsupportedException>(
                    () => host.Model.CreateSession(new SessionOptions
                    {
                        Path = ComputePath.Reference,
                        KvType = KvType.Q8_0,
                    }), "a path without that type");
                Check.Throws<UnsupportedException>(
                    () => host.Session.Generate(new RequestOptions("x")
                    {
                        Grammar = "{\"type\":\"string\",\"format\":\"no-such-format\"}",
                        GrammarKind = GrammarKind.JsonSchema,
                    }), "a schema that cannot be honoured");
            }
        }

        public static void MemoryLimit()
        {
            using (var engine = new Engine(new EngineOptions { MemoryLimitBytes = 1 << 16 }))
            using (Model model = engine.OpenModel(new Golden("llama-q8_0").Path))
            {
                var caught = Check.Throws<MemoryException>(() => model.CreateSession(),
                                                           "too little");
                Check.Equal(Status.OomHost, caught.Status, "status");
                Check.True(caught.Wanted > 0 && caught.Limit == 1 << 16, caught.Message);
            }
        }

        public static void Disposed()
        {
            var host = new Host();
            host.Dispose();
            host.Dispose();
            Check.Throws<ObjectDisposedException>(() => host.Session.Generate("x", 1), "session");
            Check.Throws<ObjectDisposedException>(() => host.Model.CreateSession(), "model");
            Check.Throws<ObjectDisposedException>(() => host.Engine.Poll(TimeSpan.Zero), "engine");
        }

        /// <summary>A library of an older release is refused by name of what it lacks.</summary>
        public static void OlderLibrary()
        {
            IntPtr table = OptimaLibrary.Api.GetApi(OptimaRelease.Abi);
            int index = Array.FindIndex(Api.Names, name => name.EndsWith("of 1.1"));
            int size = 8 + 8 * index;
            var copy = new byte[size];
            Marshal.Copy(table, copy, 0, size);
            BitConverter.GetBytes(size).CopyTo(copy, 0);
            GCHandle pin = GCHandle.Alloc(copy, GCHandleType.Pinned);
            try
            {
                var caught = Check.Throws<VersionException>(
                    () => OptimaLibrary.CheckTable(pin.AddrOfPinnedObject(), "old.so"), "older");
                Check.Equal((long)size, caught.Available.Value, "bytes");
                Check.Equal((long)Api.TableSize, caught.Wanted.Value, "bytes needed");
                Check.True(caught.Message.EndsWith("lacks " + Api.Names[index]), caught.Message);
            }
            finally
            {
                pin.Free();
            }
            Check.Throws<VersionException>(() => OptimaLibrary.CheckTable(IntPtr.Zero, "x"),
                                           "no table");
            Check.Throws<InvalidOperationException>(() => OptimaLibrary.Path = "x", "too late");
        }
    }

    /// <summary>Run where OPTIMA_LIBRARY names a folder without it, or is not set.</summary>
    internal static class MissingTests
    {
        public static void Message()
        {
            string named = Environment.GetEnvironmentVariable("OPTIMA_LIBRARY");
            var caught = Check.Throws<LibraryNotFoundException>(() => new Engine(), "no library");
            Check.True(caught.Message.IndexOf('\n') < 0, "one line");
            string folder = System.IO.Path.GetDirectoryName(typeof(Engine).Assembly.Location);
            string[] parts = named != null
                ? new[] { "OPTIMA_LIBRARY = " + named, named + "/libsitsoptima.so.1" }
                : new[] { folder + "/libsitsoptima.so.1", folder + "/runtimes/linux-",
                          "sitsoptima by the runtime", "by the system's loader",
                          "set OPTIMA_LIBRARY" };
            foreach (string part in parts)
            {
                Check.True(caught.Message.Contains(part), "\"" + part + "\" in " + caught.Message);
            }
            // Nothing is remembered of the failure.
            Check.Throws<LibraryNotFoundException>(() => new Engine(), "again");
            string mine = typeof(Engine).Assembly.Location;
            OptimaLibrary.Path = mine;
            caught = Check.Throws<LibraryNotFoundException>(() => new Engine(), "not a library");
            Check.True(caught.Message.Contains(mine + " (") && caught.Message.Contains("Path"),
                       "why a file is none: " + caught.Message);
        }
    }
}
