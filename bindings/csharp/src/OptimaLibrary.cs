// Finds and loads libsitsoptima, and holds its functions. Mono, CoreCLR and Unity each look for
// native libraries in other places and report a failure in other words; so the places are searched
// here, in one order, and the one error names all of them.
using System;
using System.Collections.Generic;
using System.IO;
using System.Runtime.InteropServices;
using System.Threading;
using SitsOptima.Raw;

namespace SitsOptima
{
    /// <summary>
    /// The loaded libsitsoptima. It is loaded by the first use of anything; the order of search:
    /// <list type="number">
    /// <item><see cref="Path"/>, a file or a folder; when it is set nothing else is tried;</item>
    /// <item>the environment variable OPTIMA_LIBRARY, in the same way;</item>
    /// <item>libsitsoptima.so.1, then libsitsoptima.so, in the folder of this assembly and in
    /// runtimes/linux-x64/native (linux-arm64) below it, then in the program's folder;</item>
    /// <item>"sitsoptima" as the runtime finds libraries: Unity's plug-ins, what IL2CPP linked,
    /// the native folders of NuGet packages;</item>
    /// <item>libsitsoptima.so.1 as the system's loader finds libraries.</item>
    /// </list>
    /// </summary>
    public static class OptimaLibrary
    {
        private const string Variable = "OPTIMA_LIBRARY";
        private static readonly string[] Files = { "libsitsoptima.so.1", "libsitsoptima.so" };
        private static readonly object Gate = new object();
        private static Api api;
        private static string path;
        private static string origin;

        /// <summary>
        /// The library, or its folder, to be set before the first use of anything else.
        /// </summary>
        public static string Path
        {
            get { return path; }
            set
            {
                lock (Gate)
                {
                    if (api != null)
                    {
                        throw new InvalidOperationException("libsitsoptima is loaded already, from "
                                                            + origin);
                    }
                    path = value;
                }
            }
        }

        /// <summary>Where the library came from.</summary>
        public static string LoadedFrom
        {
            get
            {
                return Api == null ? null : origin;
            }
        }

        /// <summary>Its release, such as "1.1.0".</summary>
        public static string Version
        {
            get { return Utf8.Read(Api.Version()); }
        }

        /// <summary>What this build of it can do.</summary>
        public static Features Features
        {
            get { return (Features)Api.Features(); }
        }

        /// <summary>The C API.</summary>
        /// <exception cref="LibraryNotFoundException">There is no library.</exception>
        /// <exception cref="VersionException">It is older than this assembly.</exception>
        public static Api Api
        {
            get { return Volatile.Read(ref api) ?? Load(); }
        }

        private static Api Load()
        {
            lock (Gate)
            {
                if (api != null) return api;
                if (IntPtr.Size != 8)
                {
                    throw new PlatformNotSupportedException(
                        "libsitsoptima needs a 64-bit process; this one has 32 bits");
                }
                Function.GetApi getApi = Find();
                IntPtr table = getApi(OptimaRelease.Abi);
                CheckTable(table, origin);
                Volatile.Write(ref api, new Api(table));
                return api;
            }
        }

        /// <summary>Refuses a table that ends before the last function needed.</summary>
        internal static void CheckTable(IntPtr table, string from)
        {
            if (table == IntPtr.Zero)
            {
                throw new VersionException("libsitsoptima (" + from + ") does not have ABI "
                                           + OptimaRelease.Abi, OptimaRelease.Abi, -1);
            }
            int size = Marshal.ReadInt32(table);
            if (size >= Api.TableSize) return;
            var version = Marshal.GetDelegateForFunctionPointer<Function.Version>(
                Marshal.ReadIntPtr(table, 8));
            throw new VersionException(
                "libsitsoptima " + Utf8.Read(version()) + " (" + from + ") is older than this "
                + "assembly, which is for " + OptimaRelease.Version + ": it lacks "
                + Api.Names[(size - 8) / 8], Api.TableSize, size);
        }

        // Sets `origin`.
        private static Function.GetApi Find()
        {
            var tried = new List<string>();
            Function.GetApi found;
            string named = path ?? Environment.GetEnvironmentVariable(Variable);
            if (!string.IsNullOrEmpty(named))
            {
                // A bare name would be the system loader's to find.
                if (File.Exists(named)) named = System.IO.Path.GetFullPath(named);
                found = Directory.Exists(named) ? FromFolder(named, tried) : FromFile(named, tried);
                string who = path != null ? "OptimaLibrary.Path" : Variable;
                if (found == null) throw new LibraryNotFoundException(who + " = " + named, tried);
                return found;
            }
            foreach (string folder in Folders())
            {
                found = FromFolder(folder, tried);
                if (found != null) return found;
            }
            found = FromRuntime(tried) ?? FromFile(Files[0], tried);
            if (found != null) return found;
            throw new LibraryNotFoundException("set " + Variable + " to the file", tried);
        }

        private static IEnumerable<string> Folders()
        {
            // An assembly without a file (IL2CPP, single-file programs) has no location.
            string location = typeof(OptimaLibrary).Assembly.Location;
            string own = string.IsNullOrEmpty(location)
                ? null : System.IO.Path.GetDirectoryName(location);
            string program = AppDomain.CurrentDomain.BaseDirectory;
            bool arm = RuntimeInformation.ProcessArchitecture == Architecture.Arm64;
            string native = System.IO.Path.Combine(
                "runtimes", arm ? "linux-arm64" : "linux-x64", "native");
            if (own != null)
            {
                yield return own;
                yield return System.IO.Path.Combine(own, native);
            }
            if (own == null || own.TrimEnd('/') != program.TrimEnd('/'))
            {
                yield return program;
                yield return System.IO.Path.Combine(program, native);
            }
        }

        private static Function.GetApi FromFolder(string folder, List<string> tried)
        {
            foreach (string file in Files)
            {
                Function.GetApi found = FromFile(System.IO.Path.Combine(folder, file), tried);
                if (found != null) return found;
            }
            return null;
        }

        // A name without a folder is the system loader's to find.
        private static Function.GetApi FromFile(string file, List<string> tried)
        {
            bool isPath = file.IndexOf('/') >= 0;
            if (isPath && !File.Exists(file))
            {
                tried.Add(file);
                return null;
            }
            string why;
            IntPtr symbol = Dl.Find(file, "optima_get_api", out why);
            if (symbol == IntPtr.Zero)
            {
                tried.Add(isPath ? file + " (" + why + ")" : file + " by the system's loader");
                return null;
            }
            origin = file;
            return Marshal.GetDelegateForFunctionPointer<Function.GetApi>(symbol);
        }

        private static Function.GetApi FromRuntime(List<string> tried)
        {
            try
            {
                RuntimeGetApi(OptimaRelease.Abi);
                origin = "sitsoptima, as the runtime finds it";
                return RuntimeGetApi;
            }
            catch (DllNotFoundException)
            {
                tried.Add("sitsoptima by the runtime");
            }
            catch (EntryPointNotFoundException)
            {
                tried.Add("sitsoptima by the runtime (it has no optima_get_api)");
            }
            return null;
        }

        [DllImport("sitsoptima", EntryPoint = "optima_get_api",
                   CallingConvention = CallingConvention.Cdecl)]
        private static extern IntPtr RuntimeGetApi(uint abi);
    }

    /// <summary>The system's loader, where there is one.</summary>
    internal static class Dl
    {
        private const int Now = 2;

        /// <summary>Address of a symbol of a library, or zero and why not.</summary>
        public static IntPtr Find(string file, string symbol, out string why)
        {
            why = null;
            try
            {
                IntPtr library = Open(file, Now);
                IntPtr address = library == IntPtr.Zero ? library : Symbol(library, symbol);
                if (address == IntPtr.Zero) why = Utf8.Read(Error());
                return address;
            }
            catch (DllNotFoundException)
            {
                why = "this system has no libdl.so.2";
                return IntPtr.Zero;
            }
        }

        [DllImport("libdl.so.2", EntryPoint = "dlopen")]
        private static extern IntPtr Open(string file, int flags);

        [DllImport("libdl.so.2", EntryPoint = "dlsym")]
        private static extern IntPtr Symbol(IntPtr library, string name);

        [DllImport("libdl.so.2", EntryPoint = "dlerror")]
        private static extern IntPtr Error();
    }
}
