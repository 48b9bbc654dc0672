using System;
using SitsOptima.Raw;

namespace SitsOptima
{
    // What the file says beside the weights.
    public sealed partial class Model
    {
        /// <summary>
        /// A metadata value: a long, double, bool or string, an object[] of such; null when there
        /// is no such key.
        /// </summary>
        public object GetMetadata(string key)
        {
            if (key == null) throw new ArgumentNullException("key");
            using (var arena = new Arena())
            using (HandleUse use = handle.Use())
            {
                UIntPtr bytes;
                IntPtr text = arena.Text(key, out bytes), error;
                OptimaMetadata found = OptimaMetadata.Create();
                Status status = OptimaLibrary.Api.ModelMetadataFind(use.Pointer, text, bytes,
                                                                    ref found, out error);
                OptimaException.Check(status, error);
                return ValueOf(use.Pointer, ref found);
            }
        }

        /// <summary>All metadata keys, in the file's order.</summary>
        public string[] GetMetadataKeys()
        {
            var keys = new string[Info.MetadataCount];
            using (HandleUse use = handle.Use())
            {
                for (int i = 0; i < keys.Length; ++i)
                {
                    OptimaMetadata found = OptimaMetadata.Create();
                    IntPtr error;
                    Status status = OptimaLibrary.Api.ModelMetadataAt(use.Pointer, i, ref found,
                                                                      out error);
                    OptimaException.Check(status, error);
                    keys[i] = Utf8.Read(found.Key, found.KeyBytes);
                }
            }
            return keys;
        }

        /// <summary>A token as the vocabulary writes it; null for an id out of range.</summary>
        public string GetTokenText(int token)
        {
            using (HandleUse use = handle.Use())
            {
                long bytes;
                IntPtr text = OptimaLibrary.Api.ModelTokenText(use.Pointer, token, out bytes);
                return text == IntPtr.Zero ? null : Utf8.Read(text, bytes);
            }
        }

        /// <summary>Kind of a token; 0 for an id out of range.</summary>
        public TokenKind GetTokenKind(int token)
        {
            using (HandleUse use = handle.Use())
            {
                return OptimaLibrary.Api.ModelTokenKind(use.Pointer, token);
            }
        }

        /// <summary>Whether the token ends a generation.</summary>
        public bool EndsGeneration(int token)
        {
            using (HandleUse use = handle.Use())
            {
                return OptimaLibrary.Api.ModelTokenEnds(use.Pointer, token) != 0;
            }
        }

        /// <summary>Id of the token that the vocabulary writes so; -1 when there is none.</summary>
        public int FindToken(string text)
        {
            if (text == null) throw new ArgumentNullException("text");
            using (var arena = new Arena())
            using (HandleUse use = handle.Use())
            {
                UIntPtr bytes;
                IntPtr at = arena.Text(text, out bytes);
                return OptimaLibrary.Api.ModelTokenFind(use.Pointer, at, bytes);
            }
        }

        private static object ValueOf(IntPtr model, ref OptimaMetadata found)
        {
            switch (found.Kind)
            {
                case MetadataKind.None:
                    return null;
                case MetadataKind.Integer:
                    return found.Integer;
                case MetadataKind.Real:
                    return found.Real;
                case MetadataKind.Boolean:
                    return found.Integer != 0;
                case MetadataKind.String:
                    return Utf8.Read(found.String, found.StringBytes);
                default:
                    return ItemsOf(model, found.Index, found.Count);
            }
        }

        private static object[] ItemsOf(IntPtr model, long index, long count)
        {
            var items = new object[count];
            for (int i = 0; i < items.Length; ++i)
            {
                OptimaMetadata item = OptimaMetadata.Create();
                IntPtr error;
                Status status = OptimaLibrary.Api.ModelMetadataItem(model, index, i, ref item,
                                                                    out error);
                OptimaException.Check(status, error);
                items[i] = ValueOf(model, ref item);
            }
            return items;
        }
    }
}
