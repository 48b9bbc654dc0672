// The interface of avx512.h in plain loops, for tests only: it runs the AVX-512 algorithms on any
// CPU, so that their logic is executed wherever the tests run. The intrinsics themselves are
// covered where the CPU has them.
#pragma once

#include <stdint.h>
#include <string.h>

#include "kernels/half.h"

namespace optima::kernels {
namespace {

template <typename T, int N>
struct SimVector {
  T lane[N];
};

struct Sim512 {
  using Bytes = SimVector<uint8_t, 32>;
  using Floats = SimVector<float, 8>;
  using Wide = SimVector<uint8_t, 64>;
  using WideFloats = SimVector<float, 16>;
  static constexpr bool kSignedCodes = false;
  static constexpr bool kSquares = false;
  static constexpr int kTileColumns = 6;
  static constexpr int kTilePanels = 2;
  static constexpr int kPanelColumns = 8;
  static constexpr int kFloatColumns = 4;  // compiles in a third of the time of twelve
  static constexpr int kFloatPanels = 2;

  // The same bits as another type of vector.
  template <typename To, typename From>
  static To as(const From& from) {
    static_assert(sizeof(To) == sizeof(From));
    To to;
    memcpy(&to, &from, sizeof to);
    return to;
  }
  template <typename T>
  static T read(const void* p) {
    T value;
    memcpy(&value, p, sizeof value);
    return value;
  }
  template <typename R, typename Fn>
  static R each(const Fn& fn) {
    R out;
    int i = 0;
    for (auto& lane : out.lane) lane = static_cast<decltype(+lane)>(fn(i++));
    return out;
  }
  using Words = SimVector<int16_t, 16>;
  using Ints = SimVector<int32_t, 8>;

  // Bytes.
  static Bytes load(const void* p) { return read<Bytes>(p); }
  static void store(void* p, const Bytes& a) { memcpy(p, &a, sizeof a); }
  static Bytes fill(int8_t value) {
    return each<Bytes>([&](int) { return static_cast<uint8_t>(value); });
  }
  static Bytes load_twice(const void* p) { return load_pair(p, p); }
  static Bytes load_pair(const void* p, const void* q) {
    Bytes out;
    memcpy(out.lane, p, 16);
    memcpy(out.lane + 16, q, 16);
    return out;
  }
  static Bytes load_nibbles(const void* p) {
    const auto* bytes = static_cast<const uint8_t*>(p);
    return each<Bytes>([&](int i) { return i < 16 ? bytes[i] & 15 : bytes[i - 16] >> 4; });
  }
  static void load_nibble_pair(const void* p, const void* q, Bytes& low, Bytes& high) {
    const Bytes both = load_pair(p, q);
    low = each<Bytes>([&](int i) { return both.lane[i] & 15; });
    high = each<Bytes>([&](int i) { return both.lane[i] >> 4; });
  }
  static Bytes bit_and(const Bytes& a, const Bytes& b) {
    return each<Bytes>([&](int i) { return a.lane[i] & b.lane[i]; });
  }
  static Bytes bit_or(const Bytes& a, const Bytes& b) {
    return each<Bytes>([&](int i) { return a.lane[i] | b.lane[i]; });
  }
  static Bytes bit_xor(const Bytes& a, const Bytes& b) {
    return each<Bytes>([&](int i) { return a.lane[i] ^ b.lane[i]; });
  }
  template <int N>
  static Bytes shift(const Bytes& a) {
    using Unsigned = SimVector<uint16_t, 16>;
    const auto words = as<Unsigned>(a);
    return as<Bytes>(each<Unsigned>([&](int i) {
      return static_cast<uint16_t>(N >= 0 ? words.lane[i] >> (N & 15) : words.lane[i] << (-N & 15));
    }));
  }
  static Bytes lookup(const Bytes& table, const Bytes& index) {
    return each<Bytes>([&](int i) { return table.lane[i / 16 * 16 + (index.lane[i] & 15)]; });
  }
  static Bytes expand_bits(uint32_t bits, int8_t value) {
    return each<Bytes>([&](int i) { return (bits >> i & 1u) != 0 ? value : 0; });
  }
  static void expand_bit_pair(const void* p, const void* q, int8_t value, Bytes& low, Bytes& high) {
    const auto first = read<uint32_t>(p);
    const auto second = read<uint32_t>(q);
    low = expand_bits((first & 0xffffu) | second << 16, value);
    high = expand_bits(first >> 16 | (second & 0xffff0000u), value);
  }
  static void transpose(const Bytes row[8], Bytes out[8]) {
    Ints columns[8];
    for (int r = 0; r < 8; ++r) {
      for (int j = 0; j < 8; ++j) columns[j].lane[r] = as<Ints>(row[r]).lane[j];
    }
    for (int j = 0; j < 8; ++j) out[j] = as<Bytes>(columns[j]);
  }

  // Integer dot products.
  template <typename W, typename A>
  static Floats dot4(const W& w, const A& a) {
    return each<Floats>([&](int i) {
      int sum = 0;
      for (int j = 4 * i; j < 4 * i + 4; ++j) sum += w(j) * a(j);
      return static_cast<float>(sum);
    });
  }
  static int signed_at(const Bytes& a, int i) { return static_cast<int8_t>(a.lane[i]); }
  static Floats dot(const Bytes& u, const Bytes& a) {
    return dot4([&](int i) { return u.lane[i]; }, [&](int i) { return signed_at(a, i); });
  }
  static Floats dot_signed(const Bytes& w, const Bytes& a) {
    return dot4([&](int i) { return signed_at(w, i); }, [&](int i) { return signed_at(a, i); });
  }
  static Floats dot_pair(const Bytes& u0, const Bytes& a0, const Bytes& u1, const Bytes& a1) {
    return add(dot(u0, a0), dot(u1, a1));
  }
  static Floats dot_signed_pair(const Bytes& w0, const Bytes& a0, const Bytes& w1,
                                const Bytes& a1) {
    return add(dot_signed(w0, a0), dot_signed(w1, a1));
  }
  static Floats dot_scaled(const Bytes& u, const Bytes& a, const Bytes& scale) {
    const auto words = as<Words>(scale);
    return dot4([&](int i) { return u.lane[i] * words.lane[i / 2]; },
                [&](int i) { return signed_at(a, i); });
  }
  static Floats dot_shorts(const Bytes& a, const Bytes& b) {
    const auto x = as<Words>(a);
    const auto y = as<Words>(b);
    return each<Floats>([&](int i) {
      return static_cast<float>(x.lane[2 * i] * y.lane[2 * i] +
                                x.lane[2 * i + 1] * y.lane[2 * i + 1]);
    });
  }
  template <int I>
  static Bytes spread_words(const Bytes& words) {
    const auto in = as<Words>(words);
    return as<Bytes>(each<Words>([&](int i) { return in.lane[2 * (I % 4) + i / 8]; }));
  }
  template <int I>
  static Floats spread(const Floats& a) {
    return each<Floats>([&](int i) { return a.lane[i / 4 * 4 + I]; });
  }

  // Floats.
  static Bytes float_bits(const Floats& a) { return as<Bytes>(a); }
  static Floats zero() { return Floats{}; }
  static Floats set(float a) {
    return each<Floats>([&](int) { return a; });
  }
  static Floats load_floats(const float* p) { return read<Floats>(p); }
  template <int N>
  static Floats load_floats(const float* p) {
    return each<Floats>([&](int i) { return i < N ? p[i] : 0.0f; });
  }
  static void store_floats(float* p, const Floats& a) { memcpy(p, &a, sizeof a); }
  static Floats load_broadcast(const float* p) { return set(*p); }
  static Floats add(const Floats& a, const Floats& b) {
    return each<Floats>([&](int i) { return a.lane[i] + b.lane[i]; });
  }
  static Floats sub(const Floats& a, const Floats& b) {
    return each<Floats>([&](int i) { return a.lane[i] - b.lane[i]; });
  }
  static Floats mul(const Floats& a, const Floats& b) {
    return each<Floats>([&](int i) { return a.lane[i] * b.lane[i]; });
  }
  static Floats fma(const Floats& a, const Floats& b, const Floats& c) {
    return each<Floats>([&](int i) { return a.lane[i] * b.lane[i] + c.lane[i]; });
  }
  static float sum(const Floats& a) {
    float total = 0;
    for (const float lane : a.lane) total += lane;
    return total;
  }
  static Floats from_bytes(uint64_t bytes) {
    return each<Floats>([&](int i) { return static_cast<float>(bytes >> (8 * i) & 255u); });
  }
  static Bytes words_twice(uint64_t bytes) { return words(bytes, bytes); }
  static Bytes words(uint64_t low, uint64_t high) {
    return as<Bytes>(each<Words>(
        [&](int i) { return static_cast<int8_t>((i < 8 ? low : high) >> (8 * (i % 8))); }));
  }
  static float half(const void* p) { return half_to_float(read<uint16_t>(p)); }
  static Floats halves(const void* p) {
    return each<Floats>([&](int i) { return half(static_cast<const uint8_t*>(p) + 2 * i); });
  }
  static Floats bfloats(const void* p) {
    const auto* bytes = static_cast<const uint8_t*>(p);
    return each<Floats>([&](int i) { return bf16_to_float(read<uint16_t>(bytes + 2 * i)); });
  }
  template <int N>
  static Floats gather_halves(const uint8_t* p, int stride) {
    return each<Floats>([&](int i) { return i < N ? half(p + i * stride) : 0.0f; });
  }
  template <int N>
  static void gather_half_pairs(const uint8_t* p, int stride, Floats& first, Floats& second) {
    first = gather_halves<N>(p, stride);
    second = gather_halves<N>(p + 2, stride);
  }
  template <int N>
  static Floats gather_exponents(const uint8_t* p, int stride) {
    return each<Floats>([&](int i) {
      const uint32_t e = i < N ? p[i * stride] : 0;
      return e > 1 ? float_from_bits((e - 1) << 23) : 0.0f;
    });
  }

  // Wide vectors.
  using WideInts = SimVector<int32_t, 16>;
  using WideWords = SimVector<int16_t, 32>;
  static Wide wide_load(const void* p) { return read<Wide>(p); }
  static Wide wide_broadcast(const void* p) {
    const auto word = read<int32_t>(p);
    return as<Wide>(each<WideInts>([&](int) { return word; }));
  }
  static Wide wide_words(int16_t value) {
    return as<Wide>(each<WideWords>([&](int) { return value; }));
  }
  static Wide wide_add_dot(const Wide& sum, const Wide& u, const Wide& a) {
    auto out = as<WideInts>(sum);
    for (int i = 0; i < 64; ++i) out.lane[i / 4] += u.lane[i] * static_cast<int8_t>(a.lane[i]);
    return as<Wide>(out);
  }
  static Wide wide_add_dot_quad(const Wide& sum, const Wide& u, const void* a) {
    return wide_add_dot(sum, u, wide_broadcast(a));
  }
  static void wide_store(void* p, const Wide& a) { memcpy(p, &a, sizeof a); }
  static Wide wide_add_bytes(const Wide& a, const Wide& b) {
    return each<Wide>([&](int i) { return static_cast<uint8_t>(a.lane[i] + b.lane[i]); });
  }
  static Wide wide_fill(int8_t value) {
    return each<Wide>([&](int) { return static_cast<uint8_t>(value); });
  }
  static Wide wide_and(const Wide& a, const Wide& b) {
    return each<Wide>([&](int i) { return a.lane[i] & b.lane[i]; });
  }
  static Wide wide_or(const Wide& a, const Wide& b) {
    return each<Wide>([&](int i) { return a.lane[i] | b.lane[i]; });
  }
  template <int N>
  static Wide wide_shift(const Wide& a) {
    using Unsigned = SimVector<uint16_t, 32>;
    const auto words = as<Unsigned>(a);
    return as<Wide>(each<Unsigned>([&](int i) {
      return static_cast<uint16_t>(N >= 0 ? words.lane[i] >> (N & 15) : words.lane[i] << (-N & 15));
    }));
  }
  static Wide wide_dot_words(const Wide& a, const Wide& b) {
    const auto x = as<WideWords>(a);
    const auto y = as<WideWords>(b);
    return as<Wide>(each<WideInts>([&](int i) {
      return x.lane[2 * i] * y.lane[2 * i] + x.lane[2 * i + 1] * y.lane[2 * i + 1];
    }));
  }
  static WideFloats wide_to_float(const Wide& a) {
    const auto ints = as<WideInts>(a);
    return each<WideFloats>([&](int i) { return static_cast<float>(ints.lane[i]); });
  }
  static WideFloats wide_as_floats(const Wide& a) { return as<WideFloats>(a); }
  static Wide wide_to_int(const WideFloats& a) {
    return as<Wide>(each<WideInts>([&](int i) {
      // What no int32 holds becomes the least one.
      const bool fits = __builtin_fabsf(a.lane[i]) < 2147483648.0f;
      return fits ? static_cast<int32_t>(__builtin_nearbyintf(a.lane[i])) : INT32_MIN;
    }));
  }
  static Wide wide_words_twice(const Wide& a) {
    const auto words = as<WideWords>(a);
    return as<Wide>(each<WideWords>([&](int i) { return words.lane[i & ~1]; }));
  }
  static Wide wide_mul_add_words(const Wide& a, const Wide& b, const Wide& c) {
    const auto x = as<WideWords>(a);
    const auto y = as<WideWords>(b);
    const auto z = as<WideWords>(c);
    return as<Wide>(each<WideWords>(
        [&](int i) { return static_cast<int16_t>(x.lane[i] * y.lane[i] + z.lane[i]); }));
  }
  static WideFloats wide_zero() { return WideFloats{}; }
  static WideFloats wide_load_floats(const float* p) { return read<WideFloats>(p); }
  static WideFloats wide_halves(const void* p) {
    return each<WideFloats>([&](int i) { return half(static_cast<const uint8_t*>(p) + 2 * i); });
  }
  static WideFloats wide_from_bytes(const void* p) {
    return each<WideFloats>(
        [&](int i) { return static_cast<float>(static_cast<const uint8_t*>(p)[i]); });
  }
  static WideFloats wide_from_int8(const void* p) {
    return each<WideFloats>(
        [&](int i) { return static_cast<float>(static_cast<const int8_t*>(p)[i]); });
  }
  template <int Half>
  static WideFloats wide_twice(const float* p) {
    return each<WideFloats>([&](int i) { return p[8 * Half + i / 2]; });
  }
  template <int Half, int Pair>
  static WideFloats wide_code_pairs(const uint8_t* quads) {
    return each<WideFloats>([&](int i) {
      return static_cast<float>(quads[4 * (8 * Half + i / 2) + 2 * Pair + i % 2]);
    });
  }
  static WideFloats wide_set(float a) {
    return each<WideFloats>([&](int) { return a; });
  }
  static WideFloats wide_mul(const WideFloats& a, const WideFloats& b) {
    return each<WideFloats>([&](int i) { return a.lane[i] * b.lane[i]; });
  }
  static WideFloats wide_sub(const WideFloats& a, const WideFloats& b) {
    return each<WideFloats>([&](int i) { return a.lane[i] - b.lane[i]; });
  }
  static WideFloats wide_add(const WideFloats& a, const WideFloats& b) {
    return each<WideFloats>([&](int i) { return a.lane[i] + b.lane[i]; });
  }
  static WideFloats wide_div(const WideFloats& a, const WideFloats& b) {
    return each<WideFloats>([&](int i) { return a.lane[i] / b.lane[i]; });
  }
  static WideFloats wide_max(const WideFloats& a, const WideFloats& b) {
    return each<WideFloats>([&](int i) { return a.lane[i] > b.lane[i] ? a.lane[i] : b.lane[i]; });
  }
  static WideFloats wide_abs(const WideFloats& a) {
    return each<WideFloats>([&](int i) { return __builtin_fabsf(a.lane[i]); });
  }
  static WideFloats wide_fma(const WideFloats& a, const WideFloats& b, const WideFloats& c) {
    return each<WideFloats>([&](int i) { return a.lane[i] * b.lane[i] + c.lane[i]; });
  }
  static WideFloats wide_add_first(const WideFloats& a, const float* p, int count) {
    return each<WideFloats>([&](int i) { return i < count ? a.lane[i] + p[i] : a.lane[i]; });
  }
  static void wide_store_floats(float* p, const WideFloats& a) { memcpy(p, &a, sizeof a); }
  static void wide_store_first(float* p, const WideFloats& a, int count) {
    memcpy(p, &a, static_cast<size_t>(count) * sizeof(float));
  }
};

}  // namespace
}  // namespace optima::kernels
