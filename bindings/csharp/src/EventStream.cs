// An awaitable stream for hosts without IAsyncEnumerable, which netstandard 2.0 does not have. The
// members have the names that newer compilers look for: there `await foreach` takes it as it is.
using System;
using System.Threading.Tasks;

namespace SitsOptima
{
    /// <summary>
    /// The events of one request, awaited one after the other. Not for several readers at once.
    /// </summary>
    public sealed class EventStream : IDisposable
    {
        private readonly EventHub hub;
        private readonly PendingCall call;
        private bool ended;

        internal EventStream(EventHub hub, PendingCall call)
        {
            this.hub = hub;
            this.call = call;
        }

        /// <summary>The event that MoveNextAsync reached.</summary>
        public GenerationEvent Current { get; private set; }

        /// <summary>What was produced, after the last event.</summary>
        public Result Result { get; private set; }

        /// <summary>The request, to cancel it.</summary>
        public Request Request
        {
            get { return call.Request; }
        }

        /// <summary>Goes to the next event; false behind the last one.</summary>
        /// <exception cref="OptimaException">Why the request failed.</exception>
        /// <exception cref="GenerationCanceledException">Its token ended it.</exception>
        public async Task<bool> MoveNextAsync()
        {
            if (ended) return false;
            GenerationEvent next = await hub.NextAsync(call).ConfigureAwait(false);
            Current = next;
            if (next.Type == EventType.Done)
            {
                ended = true;
                Result = next.Result = call.Request.GetResult();
            }
            return true;
        }

        /// <summary>Itself: what `await foreach` asks for.</summary>
        public EventStream GetAsyncEnumerator()
        {
            return this;
        }

        /// <summary>Cancels the request when it runs, and waits for its last event.</summary>
        public async Task DisposeAsync()
        {
            call.Request.Cancel();
            try
            {
                while (!ended)
                {
                    GenerationEvent next = await hub.NextAsync(call).ConfigureAwait(false);
                    ended = next.Type == EventType.Done;
                }
            }
            catch (ObjectDisposedException)
            {
                // The engine is gone, and its events with it.
            }
            call.Request.Dispose();
        }

        /// <summary>As DisposeAsync, blocking.</summary>
        public void Dispose()
        {
            call.Request.Dispose();
        }
    }
}
