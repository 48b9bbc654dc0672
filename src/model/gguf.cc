// Opens a GGUF model: one file, or a split set put together as one model. Each file is parsed on
// its own (gguf_part.cc); here the files of a set are found by name, held against what each says
// of the set (split.no, split.count, split.tensors.count), and their tensors joined. The metadata
// is that of the first file: the others carry nothing but their place in the set.
#include "model/gguf.h"

#include <algorithm>
#include <limits>
#include <unordered_set>
#include <utility>

#include "base/text.h"
#include "model/gguf_part.h"

namespace optima::model {
namespace {

// Five digits name a part, so no set has more.
constexpr int64_t kSplitCountMax = 99999;
constexpr int64_t kSplitTensorsMax = std::numeric_limits<int32_t>::max();

// "<stem>-00002-of-00003.gguf" taken apart; `number` counts from 1.
struct SplitName {
  std::string stem;
  int64_t number = 0;
  int64_t count = 0;
};

std::optional<int64_t> five_digits(std::string_view digits) {
  int64_t value = 0;
  for (const char c : digits) {
    if (c < '0' || c > '9') return std::nullopt;
    value = value * 10 + (c - '0');
  }
  return value;
}

std::optional<SplitName> parse_split_name(std::string_view path) {
  constexpr std::string_view kPattern = "-00000-of-00000.gguf";
  if (path.size() < kPattern.size()) return std::nullopt;
  const size_t stem_size = path.size() - kPattern.size();
  const std::string_view tail = path.substr(stem_size);
  if (tail.substr(0, 1) != "-" || tail.substr(6, 4) != "-of-" || tail.substr(15) != ".gguf")
    return std::nullopt;
  const auto number = five_digits(tail.substr(1, 5));
  const auto count = five_digits(tail.substr(10, 5));
  if (!number || !count) return std::nullopt;
  return SplitName{std::string(path.substr(0, stem_size)), *number, *count};
}

std::string split_path(const SplitName& name, int64_t number) {
  const auto padded = [](int64_t value) {
    const std::string digits = text(value);
    return std::string(5 - std::min<size_t>(5, digits.size()), '0') + digits;
  };
  return text(name.stem, "-", padded(number), "-of-", padded(name.count), ".gguf");
}

// What a file says of the set that it belongs to. A file without split.count is a set of one.
struct SplitInfo {
  int64_t number = 1;  // from 1
  int64_t count = 1;
  int64_t tensors = -1;  // in the whole set; -1 = not told
};

Result<int64_t> bounded(const Metadata& metadata, std::string_view key, int64_t fallback,
                        int64_t max) {
  OPTIMA_ASSIGN(const std::optional<int64_t> value, metadata.integer(key));
  if (!value) return fallback;
  if (*value < 0 || *value > max)
    return Status(Code::format, text(key, " is ", *value, ", must be from 0 to ", max),
                  {*value, -1, max});
  return *value;
}

Result<SplitInfo> split_info(const Metadata& metadata) {
  SplitInfo info;
  OPTIMA_ASSIGN(info.count, bounded(metadata, "split.count", 1, kSplitCountMax));
  info.count = std::max<int64_t>(info.count, 1);  // 0 is what some writers put for a whole model
  OPTIMA_ASSIGN(const int64_t index, bounded(metadata, "split.no", 0, kSplitCountMax));
  info.number = index + 1;
  OPTIMA_ASSIGN(info.tensors, bounded(metadata, "split.tensors.count", -1, kSplitTensorsMax));
  if (info.count > 1 && info.number > info.count)
    return Status(Code::format, text("split.no is ", index, ", but split.count is ", info.count),
                  {index, -1, info.count});
  return info;
}

struct OpenPart {
  std::unique_ptr<Bytes> bytes;
  GgufPart part;
  SplitInfo split;
};

Result<OpenPart> open_part(const Source& source, Allocator& allocator, const Progress& progress) {
  OpenPart open;
  OPTIMA_ASSIGN(open.bytes, open_bytes(source, allocator, progress));
  auto part = parse_gguf_part(open.bytes->view());
  if (!part.ok()) return part.take_status().in(open.bytes->name());
  open.part = part.take();
  auto split = split_info(open.part.metadata);
  if (!split.ok()) return split.take_status().in(open.bytes->name());
  open.split = split.take();
  return open;
}

// The name of the set, from the path of the part that was opened and what that part says.
Result<SplitName> set_name(const std::string& path, const SplitInfo& info) {
  const auto name = parse_split_name(path);
  const std::string says =
      text(path, ": this is part ", info.number, " of a set of ", info.count, " files");
  if (!name)
    return Status(Code::format,
                  text(says, ", whose names must end in -00001-of-00002.gguf and so on"));
  if (name->count != info.count || name->number != info.number)
    return Status(Code::format,
                  text(says, ", but its name says part ", name->number, " of ", name->count),
                  {info.count, name->count, -1});
  return *name;
}

Status check_part(const OpenPart& open, const SplitInfo& wanted) {
  if (open.split.number == wanted.number && open.split.count == wanted.count) return {};
  return Status(Code::format,
                text(open.bytes->name(), ": says it is part ", open.split.number, " of ",
                     open.split.count, ", expected part ", wanted.number, " of ", wanted.count));
}

class GgufReader {
 public:
  GgufReader(Allocator& allocator, const Progress& progress)
      : allocator_(allocator), progress_(progress) {}

  Result<std::unique_ptr<ModelFile>> read(const Source& source) {
    const auto* path = std::get_if<PathSource>(&source);
    // The fraction of a path's load is counted in files, which only the first file tells.
    if (path != nullptr) OPTIMA_TRY(report(0.0f));
    OPTIMA_ASSIGN(OpenPart first, open_part(source, allocator_, path ? Progress() : progress_));
    parts_.name = first.bytes->name();
    if (first.split.count == 1) {
      OPTIMA_TRY(add(std::move(first)));
    } else if (path != nullptr) {
      OPTIMA_TRY(read_set(path->path, std::move(first)));
    } else {
      return Status(Code::unsupported,
                    text(parts_.name, ": part ", first.split.number, " of a set of ",
                         first.split.count, " files; a split model can only be opened by path"),
                    {first.split.count, 1, 1});
    }
    if (path != nullptr) OPTIMA_TRY(report(1.0f));
    return ModelFile::create(std::move(parts_));
  }

 private:
  Status report(float fraction) const {
    if (!progress_ || progress_(fraction)) return {};
    return Status(Code::cancelled, text("the progress callback cancelled the load of ",
                                        parts_.name.empty() ? "the model" : parts_.name));
  }

  Status read_set(const std::string& path, OpenPart given) {
    const SplitInfo info = given.split;
    OPTIMA_ASSIGN(const SplitName name, set_name(path, info));
    for (int64_t number = 1; number <= info.count; ++number) {
      if (number == info.number) {
        OPTIMA_TRY(add(std::move(given)));
      } else {
        auto part = open_part(PathSource{split_path(name, number)}, allocator_, Progress());
        if (!part.ok()) return part.take_status().in(text("part ", number, " of ", info.count));
        OPTIMA_TRY(check_part(*part, {number, info.count, -1}));
        OPTIMA_TRY(add(part.take()));
      }
      if (number < info.count)
        OPTIMA_TRY(report(static_cast<float>(number) / static_cast<float>(info.count)));
    }
    const auto tensors = static_cast<int64_t>(parts_.tensors.size());
    if (info.tensors >= 0 && info.tensors != tensors)
      return Status(Code::format,
                    text(path, ": split.tensors.count is ", info.tensors, ", but the ", info.count,
                         " files hold ", tensors, " tensors"),
                    {info.tensors, tensors, -1});
    return {};
  }

  Status add(OpenPart open) {
    for (const Tensor& tensor : open.part.tensors) {
      if (!names_.insert(tensor.name).second)
        return Status(Code::format, text(open.bytes->name(), ": tensor ", in_quotes(tensor.name),
                                         " is in an earlier part of the set as well"));
      parts_.tensors.push_back(tensor);
    }
    if (parts_.files.empty()) parts_.metadata = std::move(open.part.metadata);
    parts_.files.push_back(std::move(open.bytes));
    return {};
  }

  Allocator& allocator_;
  const Progress& progress_;
  ModelFileParts parts_;
  std::unordered_set<std::string_view> names_;
};

}  // namespace

Result<std::unique_ptr<ModelFile>> open_gguf(const Source& source, Allocator& allocator,
                                             const Progress& progress) {
  return GgufReader(allocator, progress).read(source);
}

}  // namespace optima::model
