using System;
using System.IO;
using System.Threading;
using SitsOptima.Raw;

namespace SitsOptima
{
    public sealed partial class EngineOptions
    {
        /// <summary>
        /// Log messages, from any thread of the engine; it must not call into the engine. What it
        /// throws is kept in Engine.LogFailure.
        /// </summary>
        public Action<LogLevel, string> Log { get; set; }
    }

    public sealed partial class ModelOptions
    {
        /// <summary>Loading progress in [0, 1], on the thread that opens the model.</summary>
        public IProgress<float> Progress { get; set; }
    }

    /// <summary>
    /// Owns threads and memory, loads models, runs requests. Methods may be called from any
    /// thread.
    /// </summary>
    public sealed class Engine : IDisposable
    {
        private readonly OptimaEngineHandle handle = new OptimaEngineHandle();
        private readonly LogOwner log;

        /// <summary>Makes an engine and its threads.</summary>
        /// <exception cref="OptimaException">A value is out of range, or memory out.</exception>
        public Engine(EngineOptions options = null)
        {
            options = options ?? new EngineOptions();
            Api api = OptimaLibrary.Api;
            OptimaEngineOptions desc = OptimaEngineOptions.Create();
            IntPtr pointer, error;
            using (var arena = new Arena())
            {
                options.Fill(ref desc, arena);
                if (options.Log != null)
                {
                    log = new LogOwner(options.Log);
                    desc.Log = Callbacks.LogPointer;
                    desc.LogUser = Cookie.Make(log);
                    desc.LogRelease = Callbacks.ReleasePointer;
                }
                OptimaException.Check(api.EngineCreate(ref desc, out pointer, out error), error);
            }
            handle.Adopt(pointer);
            Hub = new EventHub(handle, options.Drive);
        }

        internal EventHub Hub { get; private set; }

        /// <summary>Threads that compute.</summary>
        public int Threads
        {
            get
            {
                using (HandleUse use = handle.Use())
                {
                    return OptimaLibrary.Api.EngineThreads(use.Pointer);
                }
            }
        }

        /// <summary>The first exception that EngineOptions.Log threw; null for none.</summary>
        public Exception LogFailure
        {
            get { return log == null ? null : log.Failure; }
        }

        /// <summary>The handle, for SitsOptima.Raw.</summary>
        public OptimaEngineHandle Handle
        {
            get { return handle; }
        }

        /// <summary>Opens a GGUF file, or a Hugging Face folder.</summary>
        /// <exception cref="FileException">It is missing or malformed.</exception>
        /// <exception cref="OperationCanceledException">The token stopped it.</exception>
        public Model OpenModel(string path, ModelOptions options = null,
                               CancellationToken token = default(CancellationToken))
        {
            if (path == null) throw new ArgumentNullException("path");
            using (var arena = new Arena())
            {
                UIntPtr bytes;
                IntPtr text = arena.Text(path, out bytes);
                return Open(options, token, null,
                    (IntPtr engine, ref OptimaModelOptions desc, out IntPtr model,
                     out IntPtr error) => OptimaLibrary.Api.ModelOpenPath(
                         engine, text, bytes, ref desc, out model, out error));
            }
        }

        /// <summary>
        /// Reads a GGUF file from a stream that can seek, into memory of the engine. The stream is
        /// not used after the call.
        /// </summary>
        public Model OpenModel(Stream stream, ModelOptions options = null,
                               CancellationToken token = default(CancellationToken))
        {
            if (stream == null) throw new ArgumentNullException("stream");
            OptimaIo io = OptimaIo.Create();
            var reader = new StreamOwner(stream);
            io.Length = stream.Length;
            io.Read = Callbacks.ReadPointer;
            io.Release = Callbacks.ReleasePointer;
            return Open(options, token, reader,
                (IntPtr engine, ref OptimaModelOptions desc, out IntPtr model,
                 out IntPtr error) =>
                {
                    io.User = Cookie.Make(reader);
                    return OptimaLibrary.Api.ModelOpenIo(engine, ref io, ref desc, out model,
                                                         out error);
                });
        }

        /// <summary>
        /// Raises the events of submitted requests on this thread, and says how many. Waits while
        /// there are none and requests are running: TimeSpan.Zero = not at all, negative = forever.
        /// What a handler throws comes out here; the other events stay for the next call.
        /// </summary>
        public int Poll(TimeSpan timeout)
        {
            return Hub.Poll(Milliseconds(timeout));
        }

        /// <summary>
        /// One turn of an engine with Drive.Host; false when there was nothing to do.
        /// </summary>
        public bool Step()
        {
            int worked;
            IntPtr error;
            using (HandleUse use = handle.Use())
            {
                OptimaException.Check(
                    OptimaLibrary.Api.Step(use.Pointer, out worked, out error), error);
            }
            return worked != 0;
        }

        /// <summary>Memory of the engine, as of now.</summary>
        public OptimaMemory QueryMemory()
        {
            OptimaMemory memory = OptimaMemory.Create();
            IntPtr error;
            using (HandleUse use = handle.Use())
            {
                OptimaException.Check(
                    OptimaLibrary.Api.MemQuery(use.Pointer, ref memory, out error), error);
            }
            return memory;
        }

        /// <summary>What the engine does and has done.</summary>
        public OptimaMetrics QueryMetrics()
        {
            OptimaMetrics metrics = OptimaMetrics.Create();
            IntPtr error;
            using (HandleUse use = handle.Use())
            {
                OptimaException.Check(
                    OptimaLibrary.Api.MetricsQuery(use.Pointer, ref metrics, out error), error);
            }
            return metrics;
        }

        /// <summary>The same as Prometheus text; every line has the label `engine`.</summary>
        public string RenderMetrics(string label, MetricNames names = MetricNames.Native)
        {
            using (var arena = new Arena())
            using (HandleUse use = handle.Use())
            {
                UIntPtr bytes;
                IntPtr text = arena.Text(label ?? "", out bytes), buffer, error;
                Status status = OptimaLibrary.Api.MetricsRender(use.Pointer, names, text, bytes,
                                                                out buffer, out error);
                OptimaException.Check(status, error);
                return Model.TakeText(buffer);
            }
        }

        /// <summary>
        /// Cancels everything that runs and lets go of the engine. Models, sessions and requests
        /// are refused new work; they are disposed before or after.
        /// </summary>
        public void Dispose()
        {
            if (!handle.IsClosed) Hub.Close();
            handle.Dispose();
        }

        /// <summary>Whole milliseconds, negative for ever.</summary>
        internal static int Milliseconds(TimeSpan time)
        {
            if (time < TimeSpan.Zero) return -1;
            return (int)Math.Min(int.MaxValue, Math.Ceiling(time.TotalMilliseconds));
        }

        private delegate Status OpenFunction(IntPtr engine, ref OptimaModelOptions desc,
                                             out IntPtr model, out IntPtr error);

        private Model Open(ModelOptions options, CancellationToken token, CallbackOwner reader,
                           OpenFunction open)
        {
            token.ThrowIfCancellationRequested();
            options = options ?? new ModelOptions();
            OptimaModelOptions desc = OptimaModelOptions.Create();
            var owner = new LoadOwner(options.Progress, token);
            IntPtr pointer, error;
            using (var arena = new Arena())
            using (HandleUse use = handle.Use())
            {
                options.Fill(ref desc, arena);
                desc.Progress = Callbacks.ProgressPointer;
                desc.User = Cookie.Make(owner);
                desc.Release = Callbacks.ReleasePointer;
                Status status = open(use.Pointer, ref desc, out pointer, out error);
                if (status != Status.Ok)
                {
                    OptimaException failed = OptimaException.Take(status, error);
                    owner.Rethrow();
                    if (reader != null) reader.Rethrow();
                    token.ThrowIfCancellationRequested();
                    throw failed;
                }
            }
            return new Model(this, pointer);
        }
    }
}
