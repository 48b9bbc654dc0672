// Counter-based random numbers: a value is a pure function of (seed, step), so that no state has to
// be kept, saved or shared, and what else runs in the engine cannot change it.
//   Salmon et al. 2011, "Parallel random numbers: as easy as 1, 2, 3": Philox 4x32, 10 rounds
#pragma once

#include <array>
#include <cstdint>

namespace optima::sampling {

using PhiloxCounter = std::array<uint32_t, 4>;
using PhiloxKey = std::array<uint32_t, 2>;

constexpr PhiloxCounter philox4x32_10(PhiloxCounter counter, PhiloxKey key) {
  constexpr uint64_t kMultiplier0 = 0xD2511F53u, kMultiplier1 = 0xCD9E8D57u;
  constexpr uint32_t kWeyl0 = 0x9E3779B9u, kWeyl1 = 0xBB67AE85u;
  for (int round = 0; round < 10; ++round) {
    const uint64_t product0 = kMultiplier0 * counter[0];
    const uint64_t product1 = kMultiplier1 * counter[2];
    counter = {static_cast<uint32_t>(product1 >> 32) ^ counter[1] ^ key[0],
               static_cast<uint32_t>(product1),
               static_cast<uint32_t>(product0 >> 32) ^ counter[3] ^ key[1],
               static_cast<uint32_t>(product0)};
    key = {key[0] + kWeyl0, key[1] + kWeyl1};
  }
  return counter;
}

// Uniform in [0, 1), 53 bits. Draws of one step for different purposes have different streams.
constexpr double uniform(uint64_t seed, uint64_t step, uint32_t stream = 0) {
  const PhiloxCounter bits =
      philox4x32_10({static_cast<uint32_t>(step), static_cast<uint32_t>(step >> 32), stream, 0},
                    {static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)});
  const uint64_t word = static_cast<uint64_t>(bits[1]) << 32 | bits[0];
  return static_cast<double>(word >> 11) * 0x1p-53;
}

}  // namespace optima::sampling
