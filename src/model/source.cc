// Opens the kinds of source that are one file behind one view of bytes. Paths and descriptors are
// mapped (base/mmap_file), the host's memory is used where it lies, and only read callbacks cost a
// copy: their bytes go to one Allocator buffer, piece by piece, so that a load can be watched and
// cancelled. What the bytes mean is gguf.cc's matter.
#include "model/source.h"

#include <algorithm>

#include "base/mmap_file.h"
#include "base/text.h"

namespace optima::model {
namespace {

constexpr int64_t kPieceBytes = int64_t{16} << 20;

class MappedBytes final : public Bytes {
 public:
  MappedBytes(MmapFile file, std::string name) : file_(std::move(file)) {
    view_ = file_.view();
    name_ = std::move(name);
  }
  void prefetch() const override { file_.prefetch(); }

 private:
  MmapFile file_;
};

class HostBytes final : public Bytes {
 public:
  HostBytes(const MemorySource& source, std::string name) {
    view_ = {source.data, static_cast<size_t>(source.length)};
    name_ = std::move(name);
  }
};

class ReadBytes final : public Bytes {
 public:
  ReadBytes(Buffer buffer, int64_t length, std::string name) : buffer_(std::move(buffer)) {
    view_ = {buffer_.data(), static_cast<size_t>(length)};
    name_ = std::move(name);
  }

 private:
  Buffer buffer_;
};

using Opened = Result<std::unique_ptr<Bytes>>;

Status report(const Progress& progress, float fraction) {
  if (!progress || progress(fraction)) return {};
  return Status(Code::cancelled, text("the progress callback cancelled the load at ",
                                      static_cast<int>(fraction * 100.0f), " %"));
}

Opened mapped(Result<MmapFile> file, std::string name) {
  if (!file.ok()) return file.take_status().in(name);
  return Opened(std::make_unique<MappedBytes>(file.take(), std::move(name)));
}

Opened open_path(const PathSource& source) {
  return mapped(MmapFile::open(source.path), source.path.empty() ? "path" : source.path);
}

Opened open_descriptor(const DescriptorSource& source) {
  return mapped(MmapFile::map(source.descriptor, {source.offset, source.length}),
                text("descriptor ", source.descriptor));
}

Opened open_memory(const MemorySource& source) {
  if (source.data == nullptr) return Status(Code::invalid_argument, "memory: the address is null");
  if (source.length <= 0)
    return Status(Code::invalid_argument,
                  text("memory: length ", source.length, ", must be at least 1"),
                  {source.length, -1, -1});
  return Opened(std::make_unique<HostBytes>(source, "memory"));
}

Opened open_callback(const CallbackSource& source, Allocator& allocator, const Progress& progress) {
  if (!source.read) return Status(Code::invalid_argument, "callback: no read function");
  if (source.length <= 0)
    return Status(Code::invalid_argument,
                  text("callback: length ", source.length, ", must be at least 1"),
                  {source.length, -1, -1});
  OPTIMA_ASSIGN(Buffer buffer,
                allocator.allocate(static_cast<size_t>(source.length), "model bytes"));
  for (int64_t done = 0; done < source.length;) {
    const int64_t piece = std::min(kPieceBytes, source.length - done);
    if (!source.read(buffer.data() + done, done, piece))
      return Status(Code::io,
                    text("callback: reading ", piece, " bytes at offset ", done, " of ",
                         source.length, " failed"),
                    {piece, -1, -1});
    done += piece;
    if (done < source.length)
      OPTIMA_TRY(report(progress, static_cast<float>(static_cast<double>(done) /
                                                     static_cast<double>(source.length))));
  }
  return Opened(std::make_unique<ReadBytes>(std::move(buffer), source.length, "callback"));
}

}  // namespace

Result<std::unique_ptr<Bytes>> open_bytes(const Source& source, Allocator& allocator,
                                          const Progress& progress) {
  OPTIMA_TRY(report(progress, 0.0f));
  Opened bytes = [&]() -> Opened {
    if (const auto* path = std::get_if<PathSource>(&source)) return open_path(*path);
    if (const auto* file = std::get_if<DescriptorSource>(&source)) return open_descriptor(*file);
    if (const auto* memory = std::get_if<MemorySource>(&source)) return open_memory(*memory);
    if (const auto* file = std::get_if<CallbackSource>(&source))
      return open_callback(*file, allocator, progress);
    return Status(Code::invalid_argument, "a folder is no file");
  }();
  if (bytes.ok()) OPTIMA_TRY(report(progress, 1.0f));
  return bytes;
}

}  // namespace optima::model
