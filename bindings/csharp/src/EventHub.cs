// Brings the events of submitted requests to whoever waits for them. The library has one queue of
// events an engine; here any number of threads read streams, await them, or poll for handlers. One
// of them at a time, the leader, is inside optima_poll and hands out what comes; the others sleep
// until their event is there or the place is free. A thread of its own leads only while something
// is awaited, so that a program that polls or enumerates has no thread of this assembly.
using System;
using System.Collections.Generic;
using System.Diagnostics;
using System.Threading;
using System.Threading.Tasks;
using SitsOptima.Raw;

namespace SitsOptima
{
    /// <summary>Who takes the events of a request.</summary>
    internal enum Delivery
    {
        Handlers,
        Reader,
        Awaiter,
    }

    /// <summary>
    /// First in, first out. Queue lives in one assembly of Mono and in another of CoreCLR, without a
    /// forward from the one to the other: an assembly that mcs made would not run there.
    /// </summary>
    internal sealed class EventQueue<T>
    {
        private readonly LinkedList<T> items = new LinkedList<T>();

        public int Count
        {
            get { return items.Count; }
        }

        public void Enqueue(T item)
        {
            items.AddLast(item);
        }

        public T Dequeue()
        {
            T first = items.First.Value;
            items.RemoveFirst();
            return first;
        }
    }

    /// <summary>A submitted request. What is not read-only belongs to the hub's lock.</summary>
    internal sealed class PendingCall : Call
    {
        public readonly Delivery Delivery;
        public readonly EventQueue<GenerationEvent> Queue = new EventQueue<GenerationEvent>();
        public readonly Func<bool> HasEvents;
        public TaskCompletionSource<GenerationEvent> Waiter;
        public Request Request;
        public bool Done;
        public Exception Broken;
        private CancellationTokenRegistration registration;

        public PendingCall(RequestOptions options, CancellationToken token, Delivery delivery)
            : base(options, null, token)
        {
            Delivery = delivery;
            HasEvents = () => Queue.Count > 0;
        }

        /// <summary>From now on the token cancels the request.</summary>
        public void Watch(object gate)
        {
            if (!Token.CanBeCanceled) return;
            CancellationTokenRegistration made = Token.Register(
                state => ((Request)state).Cancel(), Request);
            lock (gate)
            {
                registration = made;
                if (!Done) return;
            }
            made.Dispose();
        }

        /// <summary>After the last event. Not under the lock: it waits for the token's callback.
        /// </summary>
        public void Unwatch()
        {
            registration.Dispose();
        }
    }

    internal sealed unsafe class EventHub
    {
        private const int Forever = -1;
        private const int CloseMs = 2000;
        // A thread inside the library can be aborted, as at the end of a program, when it comes out.
        private const int SliceMs = 1000;
        private const int ClockMs = 10;

        private readonly object gate = new object();
        private readonly OptimaEngineHandle engine;
        private readonly Drive drive;
        private readonly OptimaEvent[] batch = new OptimaEvent[32];
        // The leader's own.
        private readonly List<PendingCall> ended = new List<PendingCall>();
        private readonly HashSet<PendingCall> live = new HashSet<PendingCall>();
        private readonly EventQueue<KeyValuePair<PendingCall, GenerationEvent>> arrivals =
            new EventQueue<KeyValuePair<PendingCall, GenerationEvent>>();
        private int awaited;
        private bool leading, pumping;

        public EventHub(OptimaEngineHandle engine, Drive drive)
        {
            this.engine = engine;
            this.drive = drive;
        }

        /// <summary>
        /// Submits a request. The lock keeps its first event from being handed out before the
        /// request has its handle.
        /// </summary>
        public void Submit(PendingCall call, Session session,
                           EventHandler<GenerationEvent> received = null)
        {
            if (drive == Drive.Host && call.Delivery == Delivery.Awaiter)
            {
                throw new InvalidOperationException(
                    "an engine that the host drives has no thread for awaited requests; "
                    + "submit, step and poll, or enumerate a stream");
            }
            var handle = new OptimaRequestHandle();
            call.Request = new Request(handle, call);
            if (received != null) call.Request.Received += received;
            lock (gate)
            {
                session.Submit(call, handle);
                live.Add(call);
                if (call.Delivery == Delivery.Awaiter) StartPump();
            }
            call.Watch(gate);
        }

        /// <summary>The next event of a request, waiting for it.</summary>
        public GenerationEvent Next(PendingCall call)
        {
            if (!WaitUntil(call.HasEvents, Forever)) throw Lost();
            lock (gate) return call.Queue.Dequeue();
        }

        /// <summary>
        /// Takes the events of a cancelled request until the last one, which comes within a chunk;
        /// gives up where it does not, as the library's own destroy functions do.
        /// </summary>
        public void Drain(PendingCall call)
        {
            var watch = Stopwatch.StartNew();
            try
            {
                while (!call.Done && watch.ElapsedMilliseconds < CloseMs)
                {
                    if (WaitUntil(call.HasEvents, SliceMs)) lock (gate) call.Queue.Dequeue();
                }
            }
            catch (ObjectDisposedException)
            {
                // The engine is gone, and its events with it.
            }
        }

        /// <summary>The next event of an awaited request.</summary>
        public Task<GenerationEvent> NextAsync(PendingCall call)
        {
            lock (gate)
            {
                if (call.Queue.Count > 0) return Task.FromResult(call.Queue.Dequeue());
                if (call.Broken != null)
                {
                    return Task.FromException<GenerationEvent>(call.Broken);
                }
                call.Waiter = new TaskCompletionSource<GenerationEvent>(
                    TaskCreationOptions.RunContinuationsAsynchronously);
                return call.Waiter.Task;
            }
        }

        /// <summary>Raises the events for handlers on this thread; their number.</summary>
        public int Poll(int timeoutMs)
        {
            int left;
            if (!WaitUntil(() => arrivals.Count > 0, timeoutMs)) return 0;
            lock (gate) left = arrivals.Count;
            int raised = 0;
            for (; left > 0; --left)
            {
                KeyValuePair<PendingCall, GenerationEvent> arrival;
                lock (gate)
                {
                    if (arrivals.Count == 0) break;
                    arrival = arrivals.Dequeue();
                }
                ++raised;
                arrival.Key.Request.Raise(arrival.Value);
            }
            return raised;
        }

        /// <summary>Cancels all requests and waits a while for the awaited ones to end.</summary>
        public void Close()
        {
            PendingCall[] calls;
            lock (gate)
            {
                calls = new PendingCall[live.Count];
                live.CopyTo(calls);
            }
            foreach (PendingCall call in calls) call.Request.Cancel();
            var watch = Stopwatch.StartNew();
            lock (gate)
            {
                while (pumping && watch.ElapsedMilliseconds < CloseMs) Monitor.Wait(gate, 50);
            }
        }

        // ---- The leader

        /// <summary>
        /// Leads or sleeps until `ready`, which is asked under the lock. False when the time is
        /// over, or when nothing runs that could make it true.
        /// </summary>
        private bool WaitUntil(Func<bool> ready, int timeoutMs)
        {
            var watch = Stopwatch.StartNew();
            while (true)
            {
                int left;
                lock (gate)
                {
                    while (true)
                    {
                        if (ready()) return true;
                        left = timeoutMs < 0
                            ? Forever
                            : (int)Math.Max(0, timeoutMs - watch.ElapsedMilliseconds);
                        if (!leading) break;
                        if (left == 0) return false;
                        Monitor.Wait(gate, left);
                    }
                    leading = true;
                }
                int slice = left == Forever ? SliceMs : Math.Min(left, SliceMs);
                long begin = watch.ElapsedMilliseconds;
                if (Lead(slice) > 0) continue;
                bool waited = watch.ElapsedMilliseconds - begin >= slice - ClockMs;
                // The library does not wait when nothing runs.
                if (left == 0 || (drive == Drive.Library && !waited))
                {
                    lock (gate) return ready();
                }
                Thread.Yield();
            }
        }

        // The library has no event and no request that runs.
        private static OptimaException Lost()
        {
            return new OptimaException(Status.State,
                                       "the request's events were taken by another call of "
                                       + "optima_poll on the same engine");
        }

        private int Lead(int timeoutMs)
        {
            try
            {
                return Take(timeoutMs);
            }
            finally
            {
                lock (gate)
                {
                    leading = false;
                    Monitor.PulseAll(gate);
                }
            }
        }

        private int Take(int timeoutMs)
        {
            Api api = OptimaLibrary.Api;
            IntPtr error;
            UIntPtr count;
            int taken;
            using (HandleUse use = engine.Use())
            fixed (OptimaEvent* events = batch)
            {
                if (drive == Drive.Host)
                {
                    Step(api, use.Pointer);
                    timeoutMs = 0;
                }
                try
                {
                }
                finally
                {
                    // Here no abort of the thread comes between taking events and handing them out.
                    Status status = api.Poll(use.Pointer, (IntPtr)events, (UIntPtr)batch.Length,
                                             (UIntPtr)sizeof(OptimaEvent), timeoutMs, out count,
                                             out error);
                    OptimaException.Check(status, error);
                    taken = (int)count;
                    for (int i = 0; i < taken; ++i) Deliver(api, events + i, ref batch[i]);
                }
            }
            foreach (PendingCall call in ended) call.Unwatch();
            ended.Clear();
            return taken;
        }

        // BUSY: another thread is stepping, and its events will come.
        private static void Step(Api api, IntPtr pointer)
        {
            int worked;
            IntPtr error;
            Status status = api.Step(pointer, out worked, out error);
            if (status == Status.Busy) api.ErrorDestroy(error);
            else OptimaException.Check(status, error);
        }

        // The cookie is looked at before the release of the last event frees it.
        private void Deliver(Api api, OptimaEvent* native, ref OptimaEvent item)
        {
            PendingCall call;
            GenerationEvent copy;
            try
            {
                call = native->User == IntPtr.Zero
                    ? null : (PendingCall)Cookie.Target(native->User);
                copy = GenerationEvent.From(native);
            }
            finally
            {
                api.EventRelease(ref item);
            }
            if (call == null) return;
            lock (gate) Arrive(call, copy);
        }

        private void Arrive(PendingCall call, GenerationEvent copy)
        {
            if (copy.Type == EventType.Done)
            {
                call.Done = true;
                live.Remove(call);
                ended.Add(call);
                if (call.Delivery == Delivery.Awaiter) --awaited;
            }
            TaskCompletionSource<GenerationEvent> waiter = call.Waiter;
            call.Waiter = null;
            if (call.Delivery == Delivery.Handlers)
            {
                arrivals.Enqueue(new KeyValuePair<PendingCall, GenerationEvent>(call, copy));
            }
            else if (waiter == null || !waiter.TrySetResult(copy))
            {
                call.Queue.Enqueue(copy);
            }
        }

        // ---- The thread for awaited requests

        private void StartPump()
        {
            ++awaited;
            if (pumping) return;
            pumping = true;
            var thread = new Thread(Pump) { IsBackground = true, Name = "optima-events" };
            thread.Start();
        }

        private void Pump()
        {
            try
            {
                if (!WaitUntil(PumpEnds, Forever)) throw Lost();
            }
            catch (Exception exception)
            {
                // An error of optima_poll, or an engine that is gone: nothing awaited will come.
                lock (gate) Break(exception);
            }
        }

        private bool PumpEnds()
        {
            if (awaited > 0) return false;
            pumping = false;
            Monitor.PulseAll(gate);
            return true;
        }

        private void Break(Exception exception)
        {
            foreach (PendingCall call in live)
            {
                if (call.Delivery != Delivery.Awaiter) continue;
                call.Broken = exception;
                if (call.Waiter != null) call.Waiter.TrySetException(exception);
            }
            live.RemoveWhere(call => call.Delivery == Delivery.Awaiter);
            awaited = 0;
            pumping = false;
            Monitor.PulseAll(gate);
        }
    }
}
