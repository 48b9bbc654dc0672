using System;
using System.Collections.Generic;
using System.IO;
using System.Text;
using System.Threading;
using SitsOptima.Raw;

namespace SitsOptima
{
    /// <summary>A turn of a conversation.</summary>
    public sealed class ChatMessage
    {
        /// <summary>Such as "system", "user", "assistant", and what was said.</summary>
        public ChatMessage(string role, string content)
        {
            Role = role;
            Content = content;
        }

        /// <summary>Who speaks.</summary>
        public string Role { get; private set; }

        /// <summary>What is said.</summary>
        public string Content { get; private set; }
    }

    /// <summary>
    /// A loaded model: weights, tokenizer, metadata. Read-only, shared by its sessions; methods may
    /// be called from any thread.
    /// </summary>
    public sealed partial class Model : IDisposable
    {
        private readonly OptimaModelHandle handle = new OptimaModelHandle();

        internal Model(Engine engine, IntPtr pointer)
        {
            Engine = engine;
            handle.Adopt(pointer);
            OptimaModelInfo info = OptimaModelInfo.Create();
            IntPtr error;
            OptimaException.Check(
                OptimaLibrary.Api.ModelGetInfo(pointer, ref info, out error), error);
            Info = info;
            Architecture = Utf8.Read(OptimaLibrary.Api.ModelArchitecture(pointer));
            Name = Utf8.Read(OptimaLibrary.Api.ModelName(pointer));
            long bytes;
            IntPtr template = OptimaLibrary.Api.ModelChatTemplate(pointer, out bytes);
            ChatTemplate = Utf8.Read(template, bytes);
        }

        /// <summary>The engine that opened it.</summary>
        public Engine Engine { get; private set; }

        /// <summary>Sizes and special tokens.</summary>
        public OptimaModelInfo Info { get; private set; }

        /// <summary>Such as "llama".</summary>
        public string Architecture { get; private set; }

        /// <summary>As the file says.</summary>
        public string Name { get; private set; }

        /// <summary>The file's chat template; empty when it has none.</summary>
        public string ChatTemplate { get; private set; }

        /// <summary>The handle, for SitsOptima.Raw.</summary>
        public OptimaModelHandle Handle
        {
            get { return handle; }
        }

        /// <summary>Token ids of a text.</summary>
        public int[] Tokenize(string text, TextFlags flags = TextFlags.None)
        {
            if (text == null) throw new ArgumentNullException("text");
            using (var arena = new Arena())
            using (HandleUse use = handle.Use())
            {
                UIntPtr bytes;
                IntPtr at = arena.Text(text, out bytes), buffer, error;
                Status status = OptimaLibrary.Api.ModelTokenize(use.Pointer, at, bytes,
                                                                (uint)flags, out buffer, out error);
                OptimaException.Check(status, error);
                return TakeIds(buffer);
            }
        }

        /// <summary>
        /// Text of token ids; bytes that are no UTF-8 become U+FFFD, see DetokenizeBytes.
        /// </summary>
        public string Detokenize(IReadOnlyList<int> ids, TextFlags flags = TextFlags.None)
        {
            return Encoding.UTF8.GetString(DetokenizeBytes(ids, flags));
        }

        /// <summary>Bytes of token ids.</summary>
        public byte[] DetokenizeBytes(IReadOnlyList<int> ids, TextFlags flags = TextFlags.None)
        {
            if (ids == null) throw new ArgumentNullException("ids");
            using (var arena = new Arena())
            using (HandleUse use = handle.Use())
            {
                UIntPtr count;
                IntPtr at = arena.Ints(ids, out count), buffer, error;
                Status status = OptimaLibrary.Api.ModelDetokenize(
                    use.Pointer, at, count, (uint)flags, out buffer, out error);
                OptimaException.Check(status, error);
                return TakeBytes(buffer);
            }
        }

        /// <summary>A conversation as a prompt, by the chat template.</summary>
        public string RenderChat(params ChatMessage[] messages)
        {
            return RenderChat(messages, null);
        }

        /// <summary>The same with options, whose MessagesJson is not used.</summary>
        public string RenderChat(IEnumerable<ChatMessage> messages, ChatOptions options)
        {
            if (messages == null) throw new ArgumentNullException("messages");
            return Render(options ?? new ChatOptions(), Json.Messages(messages));
        }

        /// <summary>The same from MessagesJson, an array of message objects.</summary>
        public string RenderChat(ChatOptions options)
        {
            if (options == null) throw new ArgumentNullException("options");
            return Render(options, options.MessagesJson);
        }

        /// <summary>Makes an empty session.</summary>
        public Session CreateSession(SessionOptions options = null)
        {
            IntPtr pointer, error;
            using (HandleUse use = handle.Use())
            using (var desc = new SessionDesc(options))
            {
                OptimaException.Check(
                    OptimaLibrary.Api.SessionCreate(use.Pointer, ref desc.Native, out pointer,
                                                    out error), error);
            }
            return new Session(this, pointer);
        }

        /// <summary>Makes a session that goes on where one was saved in a file.</summary>
        public Session RestoreSession(string path, SessionOptions options = null)
        {
            if (path == null) throw new ArgumentNullException("path");
            IntPtr pointer, error;
            using (var arena = new Arena())
            using (HandleUse use = handle.Use())
            using (var desc = new SessionDesc(options))
            {
                UIntPtr bytes;
                IntPtr at = arena.Text(path, out bytes);
                OptimaException.Check(
                    OptimaLibrary.Api.SessionRestorePath(use.Pointer, ref desc.Native, at, bytes,
                                                         out pointer, out error), error);
            }
            return new Session(this, pointer);
        }

        /// <summary>The same from a stream that can seek.</summary>
        public Session RestoreSession(Stream stream, SessionOptions options = null)
        {
            if (stream == null) throw new ArgumentNullException("stream");
            IntPtr pointer, error;
            var reader = new StreamOwner(stream);
            OptimaIo io = OptimaIo.Create();
            io.Length = stream.Length;
            io.Read = Callbacks.ReadPointer;
            io.Release = Callbacks.ReleasePointer;
            using (HandleUse use = handle.Use())
            using (var desc = new SessionDesc(options))
            {
                io.User = Cookie.Make(reader);
                Status status = OptimaLibrary.Api.SessionRestore(
                    use.Pointer, ref desc.Native, ref io, out pointer, out error);
                if (status != Status.Ok)
                {
                    OptimaException failed = OptimaException.Take(status, error);
                    reader.Rethrow();
                    throw failed;
                }
            }
            return new Session(this, pointer);
        }

        /// <summary>Lets go of the model; its sessions live on.</summary>
        public void Dispose()
        {
            handle.Dispose();
        }

        private string Render(ChatOptions options, string messages)
        {
            using (var arena = new Arena())
            using (HandleUse use = handle.Use())
            {
                OptimaChatDesc desc = OptimaChatDesc.Create();
                IntPtr buffer, error;
                options.Fill(ref desc, arena);
                desc.MessagesJson = arena.Text(messages, out desc.MessagesJsonBytes);
                OptimaException.Check(
                    OptimaLibrary.Api.ModelRender(use.Pointer, ref desc, out buffer, out error),
                    error);
                return TakeText(buffer);
            }
        }

        internal static string TakeText(IntPtr buffer)
        {
            return Encoding.UTF8.GetString(TakeBytes(buffer));
        }

        private static byte[] TakeBytes(IntPtr buffer)
        {
            using (var owner = new OptimaBufferHandle())
            {
                owner.Adopt(buffer);
                long bytes;
                IntPtr at = OptimaLibrary.Api.BufferText(buffer, out bytes);
                return Copy.Bytes(at, bytes);
            }
        }

        internal static int[] TakeIds(IntPtr buffer)
        {
            using (var owner = new OptimaBufferHandle())
            {
                owner.Adopt(buffer);
                long count;
                IntPtr at = OptimaLibrary.Api.BufferIds(buffer, out count);
                return Copy.Ints(at, count);
            }
        }

        internal static float[] TakeFloats(IntPtr buffer)
        {
            using (var owner = new OptimaBufferHandle())
            {
                owner.Adopt(buffer);
                long count;
                IntPtr at = OptimaLibrary.Api.BufferFloats(buffer, out count);
                return Copy.Floats(at, count);
            }
        }
    }

    /// <summary>What is written of JSON: netstandard 2.0 has no writer.</summary>
    internal static class Json
    {
        public static string Messages(IEnumerable<ChatMessage> messages)
        {
            var to = new StringBuilder("[");
            foreach (ChatMessage message in messages)
            {
                to.Append(to.Length > 1 ? ",{" : "{");
                String(to.Append("\"role\":"), message.Role);
                String(to.Append(",\"content\":"), message.Content);
                to.Append('}');
            }
            return to.Append(']').ToString();
        }

        private static void String(StringBuilder to, string text)
        {
            to.Append('"');
            foreach (char c in text ?? "")
            {
                if (c == '"' || c == '\\') to.Append('\\').Append(c);
                else if (c < ' ') to.Append("\\u").Append(((int)c).ToString("x4"));
                else to.Append(c);
            }
            to.Append('"');
        }
    }
}
