// What the library calls. Static methods only, each marked for ahead-of-time compilers (Mono's and
// IL2CPP), which cannot make entry points for anything else; the objects come from cookies. Nothing
// thrown may pass through native frames, so each method catches all and leaves the exception with
// its object for the call that caused it.
using System;
using System.IO;
using System.Runtime.ExceptionServices;
using System.Runtime.InteropServices;
using System.Threading;
using SitsOptima.Raw;

#if !UNITY_5_3_OR_NEWER
namespace AOT
{
    /// <summary>Unity's mark of methods that native code calls; known by its name.</summary>
    [AttributeUsage(AttributeTargets.Method)]
    internal sealed class MonoPInvokeCallbackAttribute : Attribute
    {
        public MonoPInvokeCallbackAttribute(Type type)
        {
            Type = type;
        }

        public Type Type { get; private set; }
    }
}
#endif

namespace SitsOptima
{
    /// <summary>The exception that a callback threw, until its call returns.</summary>
    internal class CallbackOwner
    {
        private ExceptionDispatchInfo failure;

        public bool Failed
        {
            get { return Volatile.Read(ref failure) != null; }
        }

        /// <summary>The first one stays.</summary>
        public void Fail(Exception exception)
        {
            Interlocked.CompareExchange(ref failure, ExceptionDispatchInfo.Capture(exception),
                                        null);
        }

        /// <summary>Throws what a callback threw, with its own stack.</summary>
        public void Rethrow()
        {
            ExceptionDispatchInfo thrown = Volatile.Read(ref failure);
            if (thrown != null) thrown.Throw();
        }

        public Exception Failure
        {
            get
            {
                ExceptionDispatchInfo thrown = Volatile.Read(ref failure);
                return thrown == null ? null : thrown.SourceException;
            }
        }

        /// <summary>The library will not call with this object again.</summary>
        public virtual void Released()
        {
        }
    }

    /// <summary>A reader or writer of a stream.</summary>
    internal sealed class StreamOwner : CallbackOwner
    {
        public readonly Stream Stream;
        private readonly byte[] buffer = new byte[1 << 16];

        public StreamOwner(Stream stream)
        {
            Stream = stream;
        }

        public void Read(IntPtr into, long offset, long bytes)
        {
            Stream.Seek(offset, SeekOrigin.Begin);
            for (long done = 0; done < bytes;)
            {
                int want = (int)Math.Min(buffer.Length, bytes - done);
                int got = Stream.Read(buffer, 0, want);
                if (got <= 0) throw new EndOfStreamException();
                Marshal.Copy(buffer, 0, new IntPtr(into.ToInt64() + done), got);
                done += got;
            }
        }

        public void Write(IntPtr from, long bytes)
        {
            for (long done = 0; done < bytes;)
            {
                int count = (int)Math.Min(buffer.Length, bytes - done);
                Marshal.Copy(new IntPtr(from.ToInt64() + done), buffer, 0, count);
                Stream.Write(buffer, 0, count);
                done += count;
            }
        }
    }

    /// <summary>The host's log.</summary>
    internal sealed class LogOwner : CallbackOwner
    {
        public readonly Action<LogLevel, string> Log;

        public LogOwner(Action<LogLevel, string> log)
        {
            Log = log;
        }
    }

    /// <summary>Loading: progress, and the token that stops it.</summary>
    internal sealed class LoadOwner : CallbackOwner
    {
        public readonly IProgress<float> Progress;
        public readonly CancellationToken Token;

        public LoadOwner(IProgress<float> progress, CancellationToken token)
        {
            Progress = progress;
            Token = token;
        }
    }

    /// <summary>Entry points for native code. The delegates live as long as the program.</summary>
    internal static unsafe class Callbacks
    {
        private const int GoOn = 0, Failed = 1;

        private static readonly Callback.OnEvent OnEventDelegate = OnEvent;
        private static readonly Callback.OnLogits OnLogitsDelegate = OnLogits;
        private static readonly Callback.Release ReleaseDelegate = Release;
        private static readonly Callback.Progress ProgressDelegate = Progress;
        private static readonly Callback.Read ReadDelegate = Read;
        private static readonly Callback.Write WriteDelegate = Write;
        private static readonly Callback.Log LogDelegate = Log;

        public static readonly IntPtr OnEventPointer = Pointer(OnEventDelegate);
        public static readonly IntPtr OnLogitsPointer = Pointer(OnLogitsDelegate);
        public static readonly IntPtr ReleasePointer = Pointer(ReleaseDelegate);
        public static readonly IntPtr ProgressPointer = Pointer(ProgressDelegate);
        public static readonly IntPtr ReadPointer = Pointer(ReadDelegate);
        public static readonly IntPtr WritePointer = Pointer(WriteDelegate);
        public static readonly IntPtr LogPointer = Pointer(LogDelegate);

        private static IntPtr Pointer<T>(T callback)
        {
            return Marshal.GetFunctionPointerForDelegate(callback);
        }

        [AOT.MonoPInvokeCallback(typeof(Callback.OnEvent))]
        private static int OnEvent(IntPtr user, IntPtr native)
        {
            var call = (Call)Cookie.Target(user);
            try
            {
                return (int)call.OnEvent(GenerationEvent.From((OptimaEvent*)native));
            }
            catch (Exception exception)
            {
                call.Fail(exception);
                return (int)Verdict.Cancel;
            }
        }

        [AOT.MonoPInvokeCallback(typeof(Callback.OnLogits))]
        private static int OnLogits(IntPtr user, IntPtr logits, long vocabulary, IntPtr tokens,
                                    long tokenCount)
        {
            var call = (Call)Cookie.Target(user);
            try
            {
                call.ChangeLogits(logits, vocabulary, Copy.Ints(tokens, tokenCount));
                return GoOn;
            }
            catch (Exception exception)
            {
                call.Fail(exception);
                return Failed;
            }
        }

        [AOT.MonoPInvokeCallback(typeof(Callback.Progress))]
        private static int Progress(IntPtr user, float fraction)
        {
            var owner = (LoadOwner)Cookie.Target(user);
            try
            {
                if (owner.Token.IsCancellationRequested) return Failed;
                if (owner.Progress != null) owner.Progress.Report(fraction);
                return GoOn;
            }
            catch (Exception exception)
            {
                owner.Fail(exception);
                return Failed;
            }
        }

        [AOT.MonoPInvokeCallback(typeof(Callback.Read))]
        private static int Read(IntPtr user, IntPtr into, long offset, long bytes)
        {
            var owner = (StreamOwner)Cookie.Target(user);
            try
            {
                owner.Read(into, offset, bytes);
                return GoOn;
            }
            catch (Exception exception)
            {
                owner.Fail(exception);
                return Failed;
            }
        }

        [AOT.MonoPInvokeCallback(typeof(Callback.Write))]
        private static int Write(IntPtr user, IntPtr from, long bytes)
        {
            var owner = (StreamOwner)Cookie.Target(user);
            try
            {
                owner.Write(from, bytes);
                return GoOn;
            }
            catch (Exception exception)
            {
                owner.Fail(exception);
                return Failed;
            }
        }

        [AOT.MonoPInvokeCallback(typeof(Callback.Log))]
        private static void Log(IntPtr user, LogLevel level, IntPtr message, UIntPtr bytes)
        {
            var owner = (LogOwner)Cookie.Target(user);
            try
            {
                owner.Log(level, Utf8.Read(message, (long)bytes));
            }
            catch (Exception exception)
            {
                owner.Fail(exception);
            }
        }

        [AOT.MonoPInvokeCallback(typeof(Callback.Release))]
        private static void Release(IntPtr user)
        {
            var owner = (CallbackOwner)Cookie.Target(user);
            Cookie.Free(user);
            owner.Released();
        }
    }
}
