// Decodes weights stored as codes with scales; see coded_weights.h. The codes are those of
// compressed-tensors' naive and packed compressors; F8_E4M3 is the OCP format (Micikevicius et al.
// 2022, arXiv:2209.05433, "FP8 formats for deep learning"): bias 7, no infinities, a NaN of each
// sign.
#include "model/hf/coded_weights.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "base/text.h"
#include "kernels/quant/quantise.h"

namespace optima::model {
namespace {

using kernels::WeightType;

constexpr int64_t kBlock = 32;  // of Q8_0 and Q4_0
constexpr std::string_view kPackedTail = ".weight_packed";
constexpr std::string_view kShapeTail = ".weight_shape";
constexpr std::array<std::string_view, 2> kScaleTails = {".weight_scale", ".weight_scale_inv"};
// How another program rounds activations and cached keys and values.
constexpr std::array<std::string_view, 8> kActivationTails = {
    ".input_scale",  ".input_zero_point",  ".input_scale_ub", ".activation_scale",
    ".output_scale", ".output_zero_point", ".k_scale",        ".v_scale"};

template <typename Tails>
bool ends_with_any(std::string_view text, const Tails& tails) {
  return std::any_of(tails.begin(), tails.end(),
                     [text](std::string_view tail) { return text.ends_with(tail); });
}

constexpr std::array<float, 256> e4m3_values() {
  std::array<float, 256> out{};
  for (int code = 0; code < 256; ++code) {
    const int exponent = code >> 3 & 15, fraction = code & 7;
    float value = exponent == 0 ? static_cast<float>(fraction) : static_cast<float>(8 + fraction);
    for (int e = std::max(exponent, 1); e < 10; ++e) value *= 0.5f;  // 2^-10 at exponent 0: / 8
    for (int e = 10; e < exponent; ++e) value *= 2.0f;
    out[static_cast<size_t>(code)] = code < 128 ? value : -value;
  }
  return out;
}
constexpr std::array<float, 256> kE4m3 = e4m3_values();
constexpr bool is_nan_code(std::byte code) {
  return (code & std::byte{0x7f}) == std::byte{0x7f};
}

std::string shape_text(const std::vector<int64_t>& shape) {
  std::string out;
  for (const int64_t size : shape) out += text(out.empty() ? "" : ", ", size);
  return "[" + out + "]";
}

int64_t product(const std::vector<int64_t>& shape) {
  int64_t out = 1;
  for (const int64_t size : shape) out *= size;
  return out;
}

bool is_codes(const SafeTensor& tensor) {
  const bool plain = tensor.type == SafeType::f8_e4m3 || tensor.type == SafeType::i8;
  return (plain && tensor.name.ends_with(".weight")) || tensor.name.ends_with(kPackedTail);
}

int64_t blocks_in(int64_t size, int64_t block) {
  return size / block + (size % block != 0 ? 1 : 0);
}

std::string weight_name(const SafeTensor& codes) {
  constexpr std::string_view kPacked = "_packed";
  return codes.name.ends_with(kPackedTail)
             ? codes.name.substr(0, codes.name.size() - kPacked.size())
             : codes.name;
}

}  // namespace

// The rows of one tensor.
struct CodedWeights::Job {
  const SafeTensor& codes;
  const Scales& scales;
  int64_t rows, columns;
  int packed_bits;
  WeightType to;
  std::byte* out;
  size_t code_row_bytes, out_row_bytes;

  const std::byte* code_row(int64_t row) const {
    return codes.data.data() + static_cast<size_t>(row) * code_row_bytes;
  }
  // Calls span(begin, end, scale) for the columns of a row that share a scale.
  template <typename Span>
  void for_scales(int64_t row, const Span& span) const {
    const float* scale =
        scales.values.data() + static_cast<size_t>(row / scales.block_rows * scales.across);
    for (int64_t begin = 0; begin < columns; begin += scales.block_columns, ++scale)
      span(begin, std::min(columns, begin + scales.block_columns), *scale);
  }

  // The codes of a row as whole numbers.
  void whole_codes(int64_t row, int8_t* to_codes) const {
    const std::byte* from = code_row(row);
    if (packed_bits != 4) {
      // Packed codes of 8 bits are offset by 128: the same bits but the highest.
      const auto flip = packed_bits == 8 ? std::byte{0x80} : std::byte{0};
      for (int64_t c = 0; c < columns; ++c) to_codes[c] = static_cast<int8_t>(from[c] ^ flip);
      return;
    }
    for (int64_t c = 0; c < columns; ++c) {
      const auto nibble = static_cast<int>(from[c / 2] >> (c % 2 * 4) & std::byte{15});
      to_codes[c] = static_cast<int8_t>(nibble - 8);
    }
  }

  // Blocks of 32 with the scale in F16 before the codes.
  void write_blocks(const int8_t* from, int64_t row, std::byte* block) const {
    for_scales(row, [&](int64_t begin, int64_t end, float scale) {
      std::byte half[2];
      kernels::quantise_row(WeightType::f16)(&scale, half, 1);
      for (int64_t c = begin; c < end; c += kBlock) {
        block = std::copy(std::begin(half), std::end(half), block);
        if (to == WeightType::q8_0) {
          std::memcpy(block, from + c, kBlock);
          block += kBlock;
          continue;
        }
        for (int64_t i = 0; i < kBlock / 2; ++i, ++block) {
          const int low = from[c + i] + 8, high = from[c + i + kBlock / 2] + 8;
          *block = static_cast<std::byte>(low | high << 4);
        }
      }
    });
  }

  // `codes_row` and `values` hold a row. The result is the column of a weight that is not a number,
  // -1 = there is none.
  int64_t decode(int64_t row, int8_t* codes_row, float* values) const {
    std::byte* to_row = out + static_cast<size_t>(row) * out_row_bytes;
    if (codes.type == SafeType::f8_e4m3) {
      const std::byte* from = code_row(row);
      const std::byte* bad = std::find_if(from, from + columns, is_nan_code);
      if (bad != from + columns) return bad - from;
      for_scales(row, [&](int64_t begin, int64_t end, float scale) {
        for (int64_t c = begin; c < end; ++c)
          values[c] = kE4m3[static_cast<size_t>(from[c])] * scale;
      });
    } else {
      whole_codes(row, codes_row);
      if (to == WeightType::q8_0 || to == WeightType::q4_0) {
        write_blocks(codes_row, row, to_row);
        return -1;
      }
      for_scales(row, [&](int64_t begin, int64_t end, float scale) {
        for (int64_t c = begin; c < end; ++c) values[c] = static_cast<float>(codes_row[c]) * scale;
      });
    }
    kernels::quantise_row(to)(values, to_row, columns);
    return -1;
  }

  // A thread stops at the first row that it cannot decode.
  Status decode_all(ThreadPool& team) const {
    struct Scratch {
      std::vector<int8_t> codes;
      std::vector<float> values;
      int64_t bad_row = 0, bad_column = -1;
    };
    const auto width = static_cast<size_t>(columns);
    std::vector<Scratch> scratch(static_cast<size_t>(team.size()));
    for (Scratch& own : scratch) {
      own.codes.resize(width);
      own.values.resize(width);
    }
    team.run([&](int thread, int threads) {
      Scratch& own = scratch[static_cast<size_t>(thread)];
      for (int64_t r = rows * thread / threads; r < rows * (thread + 1) / threads; ++r) {
        own.bad_row = r;
        own.bad_column = decode(r, own.codes.data(), own.values.data());
        if (own.bad_column >= 0) return;
      }
    });
    for (const Scratch& own : scratch)
      if (own.bad_column >= 0)
        return Status(Code::format, text("tensor ", in_quotes(codes.name), ": the weight [",
                                         own.bad_row, ", ", own.bad_column, "] is not a number"));
    return {};
  }
};

Result<std::vector<SafeTensor>> CodedWeights::decode(const std::vector<SafeTensor>& tensors,
                                                     const OpenOptions& options) {
  if (!how_.coded) return tensors;
  OPTIMA_ASSIGN(const std::unique_ptr<ThreadPool> team, ThreadPool::create(options.team));
  const Progress& progress = options.progress;
  for (const SafeTensor& tensor : tensors) by_name_.emplace(tensor.name, &tensor);
  std::vector<SafeTensor> out;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const SafeTensor& tensor = tensors[i];
    if (progress && !progress(static_cast<float>(i) / static_cast<float>(tensors.size())))
      return Status(Code::cancelled, "the progress callback cancelled the load");
    if (ends_with_any(tensor.name, kActivationTails)) continue;
    if (ends_with_any(tensor.name, kScaleTails) || tensor.name.ends_with(kShapeTail)) {
      used_.emplace(tensor.name, false);
      continue;
    }
    if (!is_codes(tensor)) {
      out.push_back(tensor);
      continue;
    }
    OPTIMA_ASSIGN(SafeTensor decoded, decode_one(tensor, *team));
    out.push_back(std::move(decoded));
  }
  for (const auto& [name, used] : used_)
    if (!used)
      return Status(Code::format, text("tensor ", in_quotes(name),
                                       " belongs to no weight that is stored as codes"));
  return out;
}

Result<const SafeTensor*> CodedWeights::scale_of(const SafeTensor& codes) {
  constexpr std::string_view kWeight = ".weight";
  const std::string weight = weight_name(codes);
  const std::string module = weight.substr(0, weight.size() - kWeight.size());
  const SafeTensor* found = nullptr;
  for (const std::string_view tail : kScaleTails) {
    const auto scale = by_name_.find(module + std::string(tail));
    if (scale == by_name_.end()) continue;
    if (found != nullptr)
      return Status(Code::format,
                    text("tensor ", in_quotes(codes.name), " has two scales, ",
                         in_quotes(found->name), " and ", in_quotes(scale->second->name)));
    found = scale->second;
  }
  if (found == nullptr)
    return Status(
        Code::format,
        text("tensor ", in_quotes(codes.name), " is of dtype ", safe_type_name(codes.type),
             " and its scale ", in_quotes(module + std::string(kScaleTails[0])), " is missing"));
  used_[found->name] = true;
  return found;
}

Result<std::vector<int64_t>> CodedWeights::read_shape(const SafeTensor& codes) {
  constexpr std::string_view kPacked = "packed";
  std::string name = codes.name;
  name.replace(name.size() - kPacked.size(), kPacked.size(), "shape");
  const auto found = by_name_.find(name);
  if (found == by_name_.end())
    return Status(Code::format, text("tensor ", in_quotes(name), " is missing"));
  const SafeTensor& shape = *found->second;
  if ((shape.type != SafeType::i64 && shape.type != SafeType::i32) || product(shape.shape) != 2)
    return Status(Code::format, text("tensor ", in_quotes(name), " is no pair of whole numbers"));
  used_[shape.name] = true;
  std::vector<int64_t> out;
  for (size_t i = 0; i < 2; ++i) {
    int64_t size = 0;
    const std::byte* at = shape.data.data() + i * static_cast<size_t>(safe_type_bytes(shape.type));
    int32_t narrow = 0;
    if (shape.type == SafeType::i64) {
      std::memcpy(&size, at, sizeof size);
    } else {
      std::memcpy(&narrow, at, sizeof narrow);
      size = narrow;
    }
    out.push_back(size);
  }
  return out;
}

// Rows and columns of the weight, checked against the bytes there are.
Result<SafeTensor> CodedWeights::logical(const SafeTensor& codes) {
  SafeTensor out = codes;
  if (codes.shape.size() != 2 || product(codes.shape) == 0)
    return Status(Code::unsupported,
                  text("tensor ", in_quotes(codes.name), " of dtype ", safe_type_name(codes.type),
                       " has shape ", shape_text(codes.shape), ", wanted [rows, columns]"));
  out.name = weight_name(codes);
  if (!codes.name.ends_with(kPackedTail)) return out;
  if (codes.type != SafeType::i32 || how_.packed_bits == 0)
    return Status(Code::unsupported, text("tensor ", in_quotes(codes.name), " is of dtype ",
                                          safe_type_name(codes.type), " in a folder with ",
                                          how_.packed_bits == 0 ? "no" : "I32", " packed codes"));
  OPTIMA_ASSIGN(out.shape, read_shape(codes));
  const int64_t in_word = kBlock / how_.packed_bits;
  // The first comparison keeps the others within 64 bits.
  if (out.shape[0] != codes.shape[0] || out.shape[1] < 1 ||
      out.shape[1] > codes.shape[1] * in_word || blocks_in(out.shape[1], in_word) != codes.shape[1])
    return Status(Code::format,
                  text("tensor ", in_quotes(codes.name), " has shape ", shape_text(codes.shape),
                       ", which does not hold ", shape_text(out.shape), " codes of ",
                       how_.packed_bits, " bits"));
  return out;
}

Result<CodedWeights::Scales> CodedWeights::read_scales(const SafeTensor& codes,
                                                       const SafeTensor& scales) const {
  const int64_t rows = codes.shape[0], columns = codes.shape[1];
  Scales out{{}, rows, columns, 1};
  const std::vector<int64_t>& shape = scales.shape;
  const std::vector<int64_t> of_rows = {rows}, of_rows_too = {rows, 1};
  std::vector<int64_t> of_blocks;
  if (how_.block_rows > 0)
    of_blocks = {blocks_in(rows, how_.block_rows), blocks_in(columns, how_.block_columns)};
  if (!of_blocks.empty() && shape == of_blocks) {
    out.block_rows = how_.block_rows;
    out.block_columns = how_.block_columns;
    out.across = of_blocks[1];
  } else if (shape == of_rows || shape == of_rows_too) {
    out.block_rows = 1;
  } else if (product(shape) != 1) {
    return Status(Code::format,
                  text("tensor ", in_quotes(scales.name), " has shape ", shape_text(shape),
                       ", wanted one scale, ", shape_text(of_rows_too),
                       of_blocks.empty() ? "" : " or " + shape_text(of_blocks)));
  }
  const bool is_float =
      scales.type == SafeType::f32 || scales.type == SafeType::f16 || scales.type == SafeType::bf16;
  if (!is_float)
    return Status(Code::unsupported,
                  text("tensor ", in_quotes(scales.name), " is of dtype ",
                       safe_type_name(scales.type), "; scales of F32, F16 and BF16 are supported"));
  const WeightType type = scales.type == SafeType::f32   ? WeightType::f32
                          : scales.type == SafeType::f16 ? WeightType::f16
                                                         : WeightType::bf16;
  out.values.resize(static_cast<size_t>(product(shape)));
  kernels::dequant_row(type)(scales.data.data(), out.values.data(), product(shape));
  for (size_t i = 0; i < out.values.size(); ++i)
    if (!(out.values[i] > 0) || !std::isfinite(out.values[i]))
      return Status(Code::format, text("tensor ", in_quotes(scales.name), ": the scale ", i, " is ",
                                       out.values[i], ", wanted a positive number"));
  return out;
}

Result<SafeTensor> CodedWeights::decode_one(const SafeTensor& codes, ThreadPool& team) {
  OPTIMA_ASSIGN(SafeTensor out, logical(codes));
  OPTIMA_ASSIGN(const SafeTensor* scale, scale_of(codes));
  OPTIMA_ASSIGN(const Scales scales, read_scales(out, *scale));
  const int64_t rows = out.shape[0], columns = out.shape[1];
  const bool packed = codes.type == SafeType::i32;
  const auto [least, most] = std::minmax_element(scales.values.begin(), scales.values.end());
  const bool whole_blocks =
      columns % kBlock == 0 && (scales.across == 1 || scales.block_columns % kBlock == 0);
  constexpr float kHalfMax = 65504.0f, kHalfNormalMin = 0x1p-14f;
  WeightType type = WeightType::f16;
  if (codes.type != SafeType::f8_e4m3 && whole_blocks && *least >= kHalfNormalMin &&
      *most <= kHalfMax) {
    type = packed && how_.packed_bits == 4 ? WeightType::q4_0 : WeightType::q8_0;
  } else {
    // At 2^-16 a unit in F16's last place is that of BF16; what is larger is finer.
    constexpr float kCoarserBelow = 0x1p-16f;
    const float largest = codes.type == SafeType::f8_e4m3 ? 448.0f : 128.0f;
    if (*most * largest > kHalfMax || *least * largest < kCoarserBelow) type = WeightType::bf16;
  }
  const auto* info = kernels::find_weight_type(static_cast<int32_t>(type));
  const size_t row_bytes = kernels::row_bytes(*info, columns);
  OPTIMA_ASSIGN(Buffer memory,
                allocator_.allocate(row_bytes * static_cast<size_t>(rows), "decoded weights"));
  const Job job{.codes = codes,
                .scales = scales,
                .rows = rows,
                .columns = columns,
                .packed_bits = packed ? how_.packed_bits : 0,
                .to = type,
                .out = memory.data(),
                .code_row_bytes = codes.data.size() / static_cast<size_t>(rows),
                .out_row_bytes = row_bytes};
  OPTIMA_TRY(job.decode_all(team));
  out.decoded = type;
  out.data = {memory.data(), row_bytes * static_cast<size_t>(rows)};
  parts_.buffers.push_back(std::move(memory));
  return out;
}

}  // namespace optima::model
