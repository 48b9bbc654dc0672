using System;
using SitsOptima.Raw;

namespace SitsOptima
{
    /// <summary>
    /// One submitted generation. Its events are raised by <see cref="Engine.Poll"/>, on the thread
    /// that polls. Methods may be called from any thread.
    /// </summary>
    public sealed class Request : IDisposable
    {
        private readonly OptimaRequestHandle handle;
        private readonly PendingCall call;

        internal Request(OptimaRequestHandle handle, PendingCall call)
        {
            this.handle = handle;
            this.call = call;
        }

        /// <summary>
        /// Raised for each event. Subscribe before anybody polls, or give Submit the handler.
        /// </summary>
        public event EventHandler<GenerationEvent> Received;

        /// <summary>Number of the request, unique in its engine.</summary>
        public ulong Id
        {
            get
            {
                using (HandleUse use = handle.Use())
                {
                    return OptimaLibrary.Api.RequestId(use.Pointer);
                }
            }
        }

        /// <summary>Whether it is done; its last events may still have to be polled.</summary>
        public bool IsDone
        {
            get
            {
                using (HandleUse use = handle.Use())
                {
                    return OptimaLibrary.Api.RequestDone(use.Pointer) != 0;
                }
            }
        }

        /// <summary>
        /// Ends it: latched, and without an effect when it has ended. The session keeps the tokens
        /// so far; the last event still comes, and the result is no exception.
        /// </summary>
        public void Cancel()
        {
            try
            {
                using (HandleUse use = handle.Use())
                {
                    OptimaLibrary.Api.RequestCancel(use.Pointer);
                }
            }
            catch (ObjectDisposedException)
            {
                // Dispose has cancelled it.
            }
        }

        /// <summary>Waits until it is done: whether it is. Negative = forever.</summary>
        public bool Wait(TimeSpan timeout)
        {
            int done;
            IntPtr error;
            using (HandleUse use = handle.Use())
            {
                Status status = OptimaLibrary.Api.RequestWait(
                    use.Pointer, Engine.Milliseconds(timeout), out done, out error);
                OptimaException.Check(status, error);
            }
            return done != 0;
        }

        /// <summary>What it produced, once it is done.</summary>
        /// <exception cref="OptimaException">Why it failed; State when it is not done.</exception>
        /// <exception cref="GenerationCanceledException">Its token ended it.</exception>
        public Result GetResult()
        {
            return call.Judge(Receive());
        }

        /// <summary>Cancels it when it runs, and waits a while for its end.</summary>
        public void Dispose()
        {
            handle.Dispose();
        }

        internal void Raise(GenerationEvent received)
        {
            EventHandler<GenerationEvent> handlers = Received;
            if (received.Type == EventType.Done && received.Status == Status.Ok
                && !handle.IsClosed)
            {
                received.Result = Receive();
            }
            if (handlers != null) handlers(this, received);
        }

        private Result Receive()
        {
            IntPtr result, error;
            using (HandleUse use = handle.Use())
            {
                Status status = OptimaLibrary.Api.RequestResult(use.Pointer, out result, out error);
                return call.Receive(status, result, error);
            }
        }
    }
}
