using System;
using System.IO;
using System.Linq;

namespace SitsOptima.Tests
{
    /// <summary>Fork, truncate, save and restore: each goes on as if nothing happened.</summary>
    internal static class SessionTests
    {
        private const int Half = 12;

        public static void Fork()
        {
            using (Host host = Halfway())
            using (Session fork = host.Session.Fork())
            {
                Check.Same(host.Session.GetTokens(), fork.GetTokens(), "tokens");
                CheckRest(host, fork);
                CheckRest(host, host.Session);
            }
        }

        public static void SaveToStream()
        {
            using (Host host = Halfway())
            using (var stream = new MemoryStream())
            {
                host.Session.Save(stream);
                Check.Equal(host.Session.SaveBytes, stream.Length, "length");
                using (Session restored = host.Model.RestoreSession(stream))
                {
                    CheckRest(host, restored);
                }
            }
        }

        public static void SaveToFile()
        {
            string path = System.IO.Path.GetTempFileName();
            try
            {
                using (Host host = Halfway())
                {
                    host.Session.Save(path);
                    using (Session restored = host.Model.RestoreSession(path))
                    {
                        CheckRest(host, restored);
                    }
                    Check.Throws<VersionException>(
                        () => host.Model.RestoreSession(path, new SessionOptions
                        {
                            KvType = KvType.Q8_0,
                        }), "another KV type");
                    byte[] bytes = File.ReadAllBytes(path);
                    bytes[bytes.Length / 2] ^= 1;
                    File.WriteAllBytes(path, bytes);
                    OptimaException damaged = Check.Throws<FileException>(
                        () => host.Model.RestoreSession(path), "a damaged file");
                    Check.Equal(Status.Format, damaged.Status, "status");
                }
            }
            finally
            {
                File.Delete(path);
            }
        }

        /// <summary>What a stream throws reaches the caller.</summary>
        public static void StreamThatFails()
        {
            using (Host host = Halfway())
            {
                var closed = new MemoryStream(new byte[16], false);
                Check.Throws<NotSupportedException>(() => host.Session.Save(closed), "save");
                var stream = new MemoryStream();
                host.Session.Save(stream);
                Check.Throws<IOException>(
                    () => host.Model.RestoreSession(new BrokenStream(stream.ToArray())), "restore");
                CheckRest(host, host.Session);
            }
        }

        public static void ModelFromStream()
        {
            using (var host = new Host())
            using (FileStream file = File.OpenRead(host.Golden.Path))
            using (Model model = host.Engine.OpenModel(file))
            using (Session session = model.CreateSession())
            {
                Check.Same(host.Golden.ContinuationIds, session.Generate(host.Request()).TokenIds,
                           "output");
            }
        }

        public static void Truncate()
        {
            using (Host host = Halfway())
            {
                int[] tokens = host.Session.GetTokens();
                host.Session.Truncate(host.Golden.PromptIds.Length + 3);
                Check.Same(tokens.Take(host.Golden.PromptIds.Length + 3),
                           host.Session.GetTokens(), "tokens");
                host.Session.Reset();
                Check.Equal(0, host.Session.GetTokens().Length, "tokens of an empty session");
                Check.Equal(0L, host.Session.QueryKv().Bytes, "bytes of an empty session");
            }
        }

        private static Host Halfway()
        {
            var host = new Host();
            RequestOptions request = host.Request();
            request.MaxTokens = Half;
            Check.Same(host.Golden.ContinuationIds.Take(Half),
                       host.Session.Generate(request).TokenIds, "first half");
            return host;
        }

        private static void CheckRest(Host host, Session session)
        {
            var request = new RequestOptions("")
            {
                MaxTokens = Half,
                Flags = RequestFlags.Append,
            };
            Check.Same(host.Golden.ContinuationIds.Skip(Half), session.Generate(request).TokenIds,
                       "second half");
        }

        private sealed class BrokenStream : MemoryStream
        {
            public BrokenStream(byte[] bytes) : base(bytes)
            {
            }

            public override int Read(byte[] buffer, int offset, int count)
            {
                throw new IOException("broken");
            }
        }
    }
}
