// What can go wrong, as exceptions. A host that reacts to one case catches its class; the numbers
// that the library gives with an error come along, null where they do not apply.
using System;
using System.Collections.Generic;
using System.Threading;

namespace SitsOptima
{
    /// <summary>A call of the library failed.</summary>
    public class OptimaException : Exception
    {
        /// <summary>As the library tells it; numbers below zero do not apply.</summary>
        public OptimaException(Status status, string message, long wanted = -1, long available = -1,
                               long limit = -1) : base(message)
        {
            Status = status;
            Wanted = Known(wanted);
            Available = Known(available);
            Limit = Known(limit);
        }

        /// <summary>What kind of failure.</summary>
        public Status Status { get; private set; }

        /// <summary>What was wanted (bytes, tokens, ..., as the message says).</summary>
        public long? Wanted { get; private set; }

        /// <summary>What there was.</summary>
        public long? Available { get; private set; }

        /// <summary>The limit that was met.</summary>
        public long? Limit { get; private set; }

        private static long? Known(long number)
        {
            return number < 0 ? (long?)null : number;
        }

        /// <summary>
        /// Throws for a status that is not Ok, with what the error object says, and frees it.
        /// </summary>
        internal static void Check(Status status, IntPtr error)
        {
            if (status != Status.Ok) throw Take(status, error);
        }

        /// <summary>The exception of a status and an error object, which is freed.</summary>
        internal static OptimaException Take(Status status, IntPtr error)
        {
            var api = OptimaLibrary.Api;
            // No error object: no memory was left for it.
            string message = error == IntPtr.Zero
                ? Utf8.Read(api.StatusName(status)) : Utf8.Read(api.ErrorMessage(error));
            long wanted = api.ErrorWanted(error), available = api.ErrorAvailable(error);
            long limit = api.ErrorLimit(error);
            api.ErrorDestroy(error);
            switch (status)
            {
                case Status.Io:
                case Status.Format:
                    return new FileException(status, message, wanted, available, limit);
                case Status.OomHost:
                case Status.OomDevice:
                    return new MemoryException(status, message, wanted, available, limit);
                case Status.ContextFull:
                    return new ContextFullException(message, wanted, available, limit);
                case Status.Busy:
                    return new BusyException(message, wanted, available, limit);
                case Status.Deadline:
                    return new DeadlineException(message, available, limit, null);
                case Status.Version:
                    return new VersionException(message, wanted, available);
                case Status.Unsupported:
                    return new UnsupportedException(message, wanted, available, limit);
                default:
                    return new OptimaException(status, message, wanted, available, limit);
            }
        }
    }

    /// <summary>A file is missing, cannot be read, or is malformed.</summary>
    public sealed class FileException : OptimaException
    {
        internal FileException(Status status, string message, long wanted, long available,
                               long limit) : base(status, message, wanted, available, limit)
        {
        }
    }

    /// <summary>Memory is exhausted: Wanted, Available and Limit in bytes.</summary>
    public sealed class MemoryException : OptimaException
    {
        internal MemoryException(Status status, string message, long wanted, long available,
                                 long limit) : base(status, message, wanted, available, limit)
        {
        }
    }

    /// <summary>A prompt does not fit: Wanted, Available and Limit in tokens.</summary>
    public sealed class ContextFullException : OptimaException
    {
        internal ContextFullException(string message, long wanted, long available, long limit)
            : base(Status.ContextFull, message, wanted, available, limit)
        {
        }
    }

    /// <summary>
    /// The object is in use, the queue is full, or the call came from a callback that may not make
    /// it.
    /// </summary>
    public sealed class BusyException : OptimaException
    {
        internal BusyException(string message, long wanted, long available, long limit)
            : base(Status.Busy, message, wanted, available, limit)
        {
        }
    }

    /// <summary>
    /// A deadline passed: Limit in milliseconds, Available in tokens that were there.
    /// </summary>
    public sealed class DeadlineException : OptimaException
    {
        internal DeadlineException(string message, long available, long limit, Result result)
            : base(Status.Deadline, message, -1, available, limit)
        {
            Result = result;
        }

        internal static DeadlineException Of(Result result, TimeSpan deadline)
        {
            long ms = RequestOptions.Milliseconds(deadline), tokens = result.TokenIds.Length;
            return new DeadlineException(
                "the deadline of " + ms + " ms passed after " + tokens + " tokens of output",
                tokens, ms, result);
        }

        /// <summary>What was generated until then; null for embeddings of several texts.</summary>
        public Result Result { get; private set; }
    }

    /// <summary>Versions of library, assembly or a saved session do not fit together.</summary>
    public sealed class VersionException : OptimaException
    {
        internal VersionException(string message, long wanted, long available)
            : base(Status.Version, message, wanted, available)
        {
        }
    }

    /// <summary>Well-formed, but this version cannot do it.</summary>
    public sealed class UnsupportedException : OptimaException
    {
        internal UnsupportedException(string message, long wanted, long available, long limit)
            : base(Status.Unsupported, message, wanted, available, limit)
        {
        }
    }

    /// <summary>A cancellation token ended a request.</summary>
    public sealed class GenerationCanceledException : OperationCanceledException
    {
        internal GenerationCanceledException(Result result, CancellationToken token)
            : base("the request was cancelled after " + result.TokenIds.Length
                   + " tokens of output", token)
        {
            Result = result;
        }

        /// <summary>What was generated until then; the session holds it too.</summary>
        public Result Result { get; private set; }
    }

    /// <summary>
    /// libsitsoptima is not there; the message says what was looked for and where.
    /// </summary>
    public sealed class LibraryNotFoundException : DllNotFoundException
    {
        internal LibraryNotFoundException(string hint, IList<string> tried)
            : base("libsitsoptima was not found (" + hint + "); looked for "
                   + string.Join(", ", tried))
        {
        }
    }
}
