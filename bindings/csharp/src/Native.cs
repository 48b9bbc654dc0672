// Between managed and native memory: handles, strings, arrays that live for one call, and the
// cookies that callbacks find their objects by.
using System;
using System.Collections.Generic;
using System.Runtime.InteropServices;
using System.Text;
using System.Threading;
using SitsOptima.Raw;

namespace SitsOptima
{
    /// <summary>
    /// A handle of the library. It is destroyed by Dispose or, as a safety net, by the finaliser;
    /// never while a call uses it.
    /// </summary>
    public abstract class OptimaHandle : SafeHandle
    {
        /// <summary>A handle without an object.</summary>
        protected OptimaHandle() : base(IntPtr.Zero, true)
        {
        }

        /// <summary>True without an object.</summary>
        public override bool IsInvalid
        {
            get { return handle == IntPtr.Zero; }
        }

        /// <summary>Becomes the owner of what a function returned.</summary>
        public void Adopt(IntPtr pointer)
        {
            SetHandle(pointer);
        }

        /// <summary>Keeps the object alive until the use is disposed.</summary>
        /// <exception cref="ObjectDisposedException">It is destroyed.</exception>
        public HandleUse Use()
        {
            return new HandleUse(this);
        }
    }

    /// <summary>A time in which a handle is not destroyed.</summary>
    public struct HandleUse : IDisposable
    {
        private readonly OptimaHandle owner;
        private bool held;

        internal HandleUse(OptimaHandle owner)
        {
            this.owner = owner;
            held = false;
            owner.DangerousAddRef(ref held);
        }

        /// <summary>The native object.</summary>
        public IntPtr Pointer
        {
            get { return owner.DangerousGetHandle(); }
        }

        /// <summary>Ends the use.</summary>
        public void Dispose()
        {
            if (held) owner.DangerousRelease();
            held = false;
        }
    }

    /// <summary>Reads what the library returns.</summary>
    internal static unsafe class Utf8
    {
        /// <summary>A NUL-terminated string; null for NULL.</summary>
        public static string Read(IntPtr text)
        {
            if (text == IntPtr.Zero) return null;
            byte* end = (byte*)text;
            while (*end != 0) ++end;
            return Read(text, end - (byte*)text);
        }

        /// <summary>A string of a length in bytes.</summary>
        public static string Read(IntPtr text, long bytes)
        {
            if (text == IntPtr.Zero || bytes == 0) return "";
            return Encoding.UTF8.GetString((byte*)text, checked((int)bytes));
        }
    }

    /// <summary>Copies of native arrays.</summary>
    internal static class Copy
    {
        public static byte[] Bytes(IntPtr from, long count)
        {
            var to = new byte[count];
            if (count > 0) Marshal.Copy(from, to, 0, to.Length);
            return to;
        }

        public static int[] Ints(IntPtr from, long count)
        {
            var to = new int[count];
            if (count > 0) Marshal.Copy(from, to, 0, to.Length);
            return to;
        }

        public static float[] Floats(IntPtr from, long count)
        {
            var to = new float[count];
            if (count > 0) Marshal.Copy(from, to, 0, to.Length);
            return to;
        }

        public static unsafe OptimaTokenLogprob[] Logprobs(IntPtr from, long count)
        {
            var to = new OptimaTokenLogprob[count];
            for (int i = 0; i < to.Length; ++i) to[i] = ((OptimaTokenLogprob*)from)[i];
            return to;
        }
    }

    /// <summary>Native memory for the arguments of one call. null becomes NULL and 0.</summary>
    internal sealed unsafe class Arena : IDisposable
    {
        private readonly List<IntPtr> blocks = new List<IntPtr>();

        public void Dispose()
        {
            foreach (IntPtr block in blocks) Marshal.FreeHGlobal(block);
            blocks.Clear();
        }

        /// <summary>UTF-8 with a NUL behind it; the empty text is not NULL.</summary>
        public IntPtr Text(string text, out UIntPtr bytes)
        {
            bytes = UIntPtr.Zero;
            if (text == null) return IntPtr.Zero;
            byte[] encoded = Encoding.UTF8.GetBytes(text);
            IntPtr block = Take(encoded.Length + 1L);
            Marshal.Copy(encoded, 0, block, encoded.Length);
            Marshal.WriteByte(block, encoded.Length, 0);
            bytes = (UIntPtr)encoded.Length;
            return block;
        }

        public IntPtr Texts(IReadOnlyList<string> texts, out IntPtr lengths, out UIntPtr count)
        {
            lengths = IntPtr.Zero;
            count = UIntPtr.Zero;
            if (texts == null) return IntPtr.Zero;
            var pointers = (IntPtr*)Take(texts.Count * (long)sizeof(IntPtr));
            var sizes = (UIntPtr*)Take(texts.Count * (long)sizeof(UIntPtr));
            for (int i = 0; i < texts.Count; ++i)
            {
                if (texts[i] == null) throw new ArgumentNullException("texts", "item " + i);
                pointers[i] = Text(texts[i], out sizes[i]);
            }
            lengths = (IntPtr)sizes;
            count = (UIntPtr)texts.Count;
            return (IntPtr)pointers;
        }

        public IntPtr Ints(IReadOnlyList<int> items, out UIntPtr count)
        {
            var to = (int*)Array(items, sizeof(int), out count);
            for (int i = 0; i < (int)count; ++i) to[i] = items[i];
            return (IntPtr)to;
        }

        public IntPtr Longs(IReadOnlyList<long> items, out UIntPtr count)
        {
            var to = (long*)Array(items, sizeof(long), out count);
            for (int i = 0; i < (int)count; ++i) to[i] = items[i];
            return (IntPtr)to;
        }

        public IntPtr Ulongs(IReadOnlyList<ulong> items, out UIntPtr count)
        {
            var to = (ulong*)Array(items, sizeof(ulong), out count);
            for (int i = 0; i < (int)count; ++i) to[i] = items[i];
            return (IntPtr)to;
        }

        public IntPtr Biases(IReadOnlyList<OptimaLogitBias> items, out UIntPtr count)
        {
            var to = (OptimaLogitBias*)Array(items, sizeof(OptimaLogitBias), out count);
            for (int i = 0; i < (int)count; ++i) to[i] = items[i];
            return (IntPtr)to;
        }

        private IntPtr Array<T>(IReadOnlyList<T> items, int size, out UIntPtr count)
        {
            count = items == null ? UIntPtr.Zero : (UIntPtr)items.Count;
            return items == null ? IntPtr.Zero : Take(items.Count * (long)size);
        }

        private IntPtr Take(long bytes)
        {
            IntPtr block = Marshal.AllocHGlobal((IntPtr)Math.Max(bytes, 1));
            blocks.Add(block);
            return block;
        }
    }

    /// <summary>
    /// An object as the `user` of a callback: it is kept from the collector until the library calls
    /// release.
    /// </summary>
    internal static class Cookie
    {
        private static int live;

        /// <summary>Cookies that were made and not released.</summary>
        public static int Live
        {
            get { return Volatile.Read(ref live); }
        }

        public static IntPtr Make(object target)
        {
            Interlocked.Increment(ref live);
            return GCHandle.ToIntPtr(GCHandle.Alloc(target));
        }

        public static object Target(IntPtr user)
        {
            return GCHandle.FromIntPtr(user).Target;
        }

        public static void Free(IntPtr user)
        {
            GCHandle.FromIntPtr(user).Free();
            Interlocked.Decrement(ref live);
        }
    }
}
