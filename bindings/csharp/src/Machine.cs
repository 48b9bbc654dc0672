using System;
using SitsOptima.Raw;

namespace SitsOptima
{
    /// <summary>What the machine has and what it measures.</summary>
    public sealed class Machine
    {
        private Machine()
        {
        }

        /// <summary>CPUs that an engine would use, and what was measured; 0 = was not.</summary>
        public OptimaProbeReport Figures { get; private set; }

        /// <summary>Instruction sets in use, such as avx2+avx512.</summary>
        public string Isa { get; private set; }

        /// <summary>Which loads gave the read roof.</summary>
        public string ReadMethod { get; private set; }

        /// <summary>
        /// Looks, and measures what the flags ask for (seconds of full load). Needs no engine.
        /// </summary>
        public static unsafe Machine Probe(ProbeOptions options = null)
        {
            OptimaProbeOptions desc = OptimaProbeOptions.Create();
            OptimaProbeReport report = OptimaProbeReport.Create();
            IntPtr error;
            if (options != null) options.Fill(ref desc, null);
            OptimaException.Check(OptimaLibrary.Api.Probe(ref desc, ref report, out error), error);
            return new Machine
            {
                Figures = report,
                Isa = Utf8.Read((IntPtr)report.Isa),
                ReadMethod = Utf8.Read((IntPtr)report.ReadMethod),
            };
        }
    }
}
