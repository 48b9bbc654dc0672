using System;
using System.Runtime.InteropServices;
using SitsOptima.Raw;

namespace SitsOptima.Tests
{
    /// <summary>Compares one struct with what the generator says the C compiler has.</summary>
    internal sealed class LayoutCheck
    {
        public void Size(Type type, int managed, int expected)
        {
            Check.Equal(expected, managed, "size of " + type.Name);
            Check.Equal(expected, Marshal.SizeOf(type), "size of " + type.Name + " in a call");
        }

        public void Offset(Type type, string field, int expected)
        {
            Check.Equal(expected, Marshal.OffsetOf(type, field).ToInt32(),
                        type.Name + "." + field);
        }

        public void Table(int functions, int bytes)
        {
            Check.Equal(functions, Api.Names.Length, "functions of the table");
            Check.Equal(bytes, Api.TableSize, "bytes of the table");
        }
    }

    internal static class LayoutTests
    {
        public static void SizesAndOffsets()
        {
            LayoutTable.Run(new LayoutCheck());
        }

        /// <summary>The loaded library's table is not shorter, and its version is ours.</summary>
        public static void Table()
        {
            IntPtr table = OptimaLibrary.Api.GetApi(OptimaRelease.Abi);
            Check.True(Marshal.ReadInt32(table) >= Api.TableSize, "the table is whole");
            Check.Equal(OptimaRelease.Version, OptimaLibrary.Version, "version");
            Check.Equal(OptimaRelease.Abi, OptimaLibrary.Api.AbiVersion(), "ABI version");
            Check.Equal(IntPtr.Zero, OptimaLibrary.Api.GetApi(OptimaRelease.Abi + 1), "next ABI");
        }

        /// <summary>The library takes the structs as they are.</summary>
        public static void DefaultsAreTheLibrarys()
        {
            OptimaRequestDesc ours = OptimaRequestDesc.Create(), theirs = ours;
            theirs.MaxTokens = 5;
            OptimaLibrary.Api.RequestDescInit(ref theirs, (UIntPtr)Marshal.SizeOf(ours));
            Check.Equal(ours, theirs, "defaults of a request");
        }
    }
}
