// Instruction sets of the CPU this process runs on.
#pragma once

#include <stdint.h>

namespace optima::kernels {

using IsaMask = uint32_t;

inline constexpr IsaMask kIsaNone = 0;              // x86-64-v2, or the baseline elsewhere
inline constexpr IsaMask kIsaAvx2 = 1u << 0;        // AVX2 + FMA + F16C + BMI1/2, OS saves ymm
inline constexpr IsaMask kIsaAvx512 = 1u << 1;      // F, BW, DQ, VL, OS saves zmm
inline constexpr IsaMask kIsaAvx512Vnni = 1u << 2;  // VNNI (with kIsaAvx512) and VBMI
inline constexpr IsaMask kIsaAvx512Bf16 = 1u << 3;
inline constexpr IsaMask kIsaAvxVnni = 1u << 4;  // VEX-coded VNNI
inline constexpr IsaMask kIsaAll = ~0u;

// Asks CPUID and XGETBV; pure, cheap, no cache.
IsaMask detect_isa();

// "avx2", "avx512", "avx512vnni", ... of one bit; "baseline" for kIsaNone or an unknown bit.
const char* isa_name(IsaMask single_bit);

}  // namespace optima::kernels
