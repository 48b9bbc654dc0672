// Instruction sets of the CPU this process runs on.
#pragma once

#include <stdint.h>

namespace optima::kernels {

using IsaMask = uint32_t;

inline constexpr IsaMask kIsaNone = 0;          // what the compiler was told: x86-64-v2, Armv8.0
inline constexpr IsaMask kIsaAvx2 = 1u << 0;    // AVX2 + FMA + F16C + BMI1/2, OS saves ymm
inline constexpr IsaMask kIsaAvx512 = 1u << 1;  // F, BW, DQ, VL, OS saves zmm
inline constexpr IsaMask kIsaAvx512Vnni = 1u << 2;  // VNNI (with kIsaAvx512) and VBMI
inline constexpr IsaMask kIsaAvx512Bf16 = 1u << 3;  // products of bfloat16 (with kIsaAvx512)
inline constexpr IsaMask kIsaAvxVnni = 1u << 4;     // VEX-coded VNNI
// Products of bfloat16 at a higher rate than those of floats. AMD's CPUs have that; on an Intel one
// (Emerald Rapids) they ran at half the rate, so others have to show it first.
inline constexpr IsaMask kIsaFastBf16 = 1u << 5;
// AMX's tiles of bfloat16 (with kIsaAvx512Bf16), and the process may use them.
inline constexpr IsaMask kIsaAmx = 1u << 6;
inline constexpr IsaMask kIsaNeon = 1u << 8;       // Advanced SIMD of 64-bit Arm
inline constexpr IsaMask kIsaNeonDot = 1u << 9;    // int8 dot products (FEAT_DotProd)
inline constexpr IsaMask kIsaNeonI8mm = 1u << 10;  // int8 matrix products (FEAT_I8MM)
inline constexpr IsaMask kIsaAll = ~0u;

inline constexpr IsaMask kIsaOfX86 =
    kIsaAvx2 | kIsaAvx512 | kIsaAvx512Vnni | kIsaAvx512Bf16 | kIsaAvxVnni | kIsaFastBf16 | kIsaAmx;
inline constexpr IsaMask kIsaOfArm = kIsaNeon | kIsaNeonDot | kIsaNeonI8mm;

// Those that a CPU of the architecture compiled for may have: rows that need others are left out of
// the arrays of variants, and their files out of the build (CMakeLists.txt).
#if defined(__x86_64__)
inline constexpr IsaMask kIsaHere = kIsaOfX86;
#elif defined(__aarch64__)
inline constexpr IsaMask kIsaHere = kIsaOfArm;
#else
inline constexpr IsaMask kIsaHere = kIsaNone;
#endif

// What the operating system says (base/cpu_words.h has the same).
struct SystemWords {
  uint64_t hwcap;   // Linux's AT_HWCAP
  uint64_t hwcap2;  // Linux's AT_HWCAP2
  uint64_t states;  // x86: the bits of XCR0 whose registers the process may use
};

// x86: asks CPUID and XGETBV. Arm, where no instruction is every process's to ask: isa_of_arm() of
// the system's words. Pure.
IsaMask detect_isa(const SystemWords& words);
IsaMask isa_of_arm(uint64_t hwcap, uint64_t hwcap2);

// "avx2", "avx512", "neon", ... of one bit; "baseline" for kIsaNone or an unknown bit.
const char* isa_name(IsaMask single_bit);

}  // namespace optima::kernels
